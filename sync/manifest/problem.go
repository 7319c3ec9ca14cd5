package manifest

import (
	"strconv"
	"strings"
)

// Reasons of a Problem found while files are rendered. Engines that use objects later, to apply or
// to check them, document their own reasons.
const (
	// ReasonInvalidManifest: the document is not a Kubernetes object. It does
	// not parse, has a key twice, or lacks apiVersion, kind or metadata.name.
	ReasonInvalidManifest = "InvalidManifest"
	// ReasonDuplicateObject: two documents describe the same object; neither is
	// used.
	ReasonDuplicateObject = "DuplicateObject"
	// ReasonLimitExceeded: the file or document is larger, deeper or more
	// numerous than allowed; the message names the limit.
	ReasonLimitExceeded = "LimitExceeded"
	// ReasonUnreadableFile: the file is listed but cannot be read, for example because it is a
	// symbolic link that leads out of the repository.
	ReasonUnreadableFile = "UnreadableFile"
	// ReasonBuildFailed: kustomize could not build the path, so nothing of it
	// was rendered.
	ReasonBuildFailed = "BuildFailed"
)

// Problem is one object or file that could not be used, with where and why. It is an error, so that it can be returned, joined and unwrapped as
// one.
type Problem struct {
	// ID is the object, or the part of its identity that is known; zero if the file could not be
	// parsed that far.
	ID ID
	// File and Line are as in Object.
	File string
	Line int
	// Cluster names the cluster that refused the object; empty for the cluster
	// of the source itself, and for problems found before any cluster was
	// asked.
	Cluster string
	// Removal says that the object is not wanted any more and could not be deleted.
	Removal bool
	// Reason is one of the documented constants.
	Reason string
	// Message says what is wrong and what to do, without a trailing period. It
	// is stable: the same input gives the same message.
	Message string
}

// Identifies reports whether anything is known of the object that the problem is about. The items of a
// list may be anything.
func (p Problem) Identifies() bool {
	return (p.ID.Kind != "" || p.ID.Name != "") && !strings.HasSuffix(p.ID.Kind, "List")
}

// MayBe reports whether the problem may be about an object in a cluster. The parts of its identity that
// are not known may be anything; as long as the version is not known, nor is the group.
func (p Problem) MayBe(id ID) bool {
	known := p.ID
	switch {
	case !p.Identifies():
		return true
	case known.Version != "" && known.Group != id.Group,
		known.Kind != "" && known.Kind != id.Kind,
		known.Name != "" && known.Name != id.Name:
		return false
	default:
		// A cluster-scoped object has no namespace, whatever its manifest says.
		return known.Namespace == "" || id.Namespace == "" || known.Namespace == id.Namespace
	}
}

// Error returns `file:line: Kind ns/name: message`, without the parts that are not known. The
// cluster, if there is one, follows the object.
func (p Problem) Error() string {
	var parts []string
	if where := place(p.File, p.Line); where != "" {
		parts = append(parts, where)
	}
	if what := p.Subject(); what != "" {
		parts = append(parts, what)
	}
	return strings.Join(append(parts, p.Message), ": ")
}

// Subject names the object and the cluster that the problem is about; empty if it is about neither.
func (p Problem) Subject() string {
	what := p.ID.String()
	switch {
	case p.Cluster == "":
		return what
	case what == "":
		return "cluster " + p.Cluster
	default:
		return what + " in cluster " + p.Cluster
	}
}

// place returns `file:line`, or the part of it that is known.
func place(file string, line int) string {
	if file == "" || line == 0 {
		return file
	}
	return file + ":" + strconv.Itoa(line)
}
