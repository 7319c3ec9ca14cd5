package git

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"

	"waybill.dev/waybill/api/v1alpha1"
)

// Ref says which commit is wanted. If several fields are set, the first of Commit, Name,
// SemVer, Tag and Branch decides, as in Flux. If all are empty, it means the server's default
// branch.
type Ref struct {
	// Branch is a short name, such as main. With Commit, it is the branch to search for the commit
	// on servers that do not serve commits by hash.
	Branch string
	// Tag is a short name, such as v1.2.0.
	Tag string
	// SemVer is a range, such as >=1.0.0 <2.0.0; the highest tag in it wins.
	SemVer string
	// Name is a full name, such as refs/heads/main or refs/pull/420/head.
	Name string
	// Commit is a full SHA-1.
	Commit string
}

// RefOf returns the reference that a spec names; the server's default branch if it names none.
func RefOf(named *v1alpha1.GitReference) Ref {
	if named == nil {
		return Ref{}
	}
	return Ref{Branch: named.Branch, Tag: named.Tag, SemVer: named.SemVer, Name: named.Name, Commit: named.Commit}
}

// Revision is a commit and the reference that led to it.
type Revision struct {
	// Ref is the short name of a branch or tag, or a full name if Ref.Name was used; empty for a
	// bare commit.
	Ref string
	// Commit is a full SHA-1.
	Commit string
}

// String returns main@sha1:abc..., or sha1:abc... if no reference is known. The same commit by the
// same reference always gives the same string.
func (r Revision) String() string {
	s := hashPrefix + r.Commit
	if r.Ref != "" {
		s = r.Ref + "@" + s
	}
	return s
}

// hashPrefix stands before the commit in the text of a Revision.
const hashPrefix = "sha1:"

// ParseRevision is the inverse of String. It reports whether text is that of a Revision whose commit
// is a full SHA-1.
func ParseRevision(text string) (Revision, bool) {
	at := strings.LastIndex(text, hashPrefix)
	if at < 0 {
		return Revision{}, false
	}
	ref, named := strings.CutSuffix(text[:at], "@")
	rev := Revision{Ref: ref, Commit: text[at+len(hashPrefix):]}
	return rev, named == (ref != "") && plumbing.IsHash(rev.Commit)
}

// find picks the commit from the references that the server advertises.
func (r Ref) find(adv *packp.AdvRefs) (Revision, error) {
	switch {
	case r.Name == plumbing.HEAD.String():
		return head(adv)
	case r.Name != "":
		return lookup(adv, r.Name, r.Name, "reference")
	case r.SemVer != "":
		return r.newest(adv)
	case r.Tag != "":
		return lookup(adv, plumbing.NewTagReferenceName(r.Tag).String(), r.Tag, "tag")
	case r.Branch != "":
		return lookup(adv, plumbing.NewBranchReferenceName(r.Branch).String(), r.Branch, "branch")
	default:
		return head(adv)
	}
}

// pinned returns the revision of a commit that is given in full, so that no server need be asked.
func (r Ref) pinned() (Revision, error) {
	if !plumbing.IsHash(r.Commit) {
		return Revision{}, fmt.Errorf("%w: commit %q is not a full SHA-1 of 40 hexadecimal digits", ErrInvalid, r.Commit)
	}
	return Revision{Ref: r.Branch, Commit: strings.ToLower(r.Commit)}, nil
}

// lookup finds a reference by its full name. Annotated tags are followed to
// their commit.
func lookup(adv *packp.AdvRefs, full, shown, what string) (Revision, error) {
	hash, ok := adv.Peeled[full]
	if !ok {
		hash, ok = adv.References[full]
	}
	if !ok {
		return Revision{}, fmt.Errorf("%w: the repository has no %s %q", ErrRefNotFound, what, shown)
	}
	return Revision{Ref: shown, Commit: hash.String()}, nil
}

// head finds the default branch. Old servers do not send its name.
func head(adv *packp.AdvRefs) (Revision, error) {
	if adv.Head == nil {
		return Revision{}, fmt.Errorf("%w: the repository has no default branch with a commit; set a branch", ErrRefNotFound)
	}
	name := plumbing.HEAD.String()
	for _, symref := range adv.Capabilities.Get(capability.SymRef) {
		if target, ok := strings.CutPrefix(symref, "HEAD:"); ok {
			name = plumbing.ReferenceName(target).Short()
		}
	}
	return Revision{Ref: name, Commit: adv.Head.String()}, nil
}

// newest finds the highest tag in the range. Tags that differ only in build metadata or in a
// leading v are ordered by name, so that the answer does not change from call to call.
func (r Ref) newest(adv *packp.AdvRefs) (Revision, error) {
	within, err := semver.NewConstraint(r.SemVer)
	if err != nil {
		return Revision{}, fmt.Errorf("%w: semver range %q: %w", ErrInvalid, r.SemVer, err)
	}
	type tag struct {
		name    string
		version *semver.Version
	}
	var tags []tag
	for full := range adv.References {
		name := plumbing.ReferenceName(full)
		if !name.IsTag() {
			continue
		}
		version, err := semver.NewVersion(name.Short())
		if err == nil && within.Check(version) {
			tags = append(tags, tag{name.Short(), version})
		}
	}
	if len(tags) == 0 {
		return Revision{}, fmt.Errorf("%w: no tag is within the semver range %q", ErrRefNotFound, r.SemVer)
	}
	best := slices.MaxFunc(tags, func(a, b tag) int {
		return cmp.Or(a.version.Compare(b.version), strings.Compare(a.name, b.name))
	})
	return Ref{Tag: best.name}.find(adv)
}
