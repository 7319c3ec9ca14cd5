package release

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"helm.sh/helm/v3/pkg/chart"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/ignore"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/render/helm"
)

// Identity identifies a release and its owner.
type Identity struct {
	// Namespace and Name of the release. A name has at most 53 characters.
	Namespace, Name string
	// Owner and OwnerHash are the values of the owner annotation and label. A release is ours
	// if its record carries OwnerHash.
	Owner, OwnerHash string
	// Known is what the last Result said about the release, kept in a place where only Waybill
	// writes, such as a status. A record that it does not vouch for is neither run nor applied, unless
	// Ensure finds that it is just what it would make itself; nil vouches for none.
	Known *v1alpha1.ReleaseStatus
	// Ignored names fields of the objects that others set: once an object is there, no action changes
	// them, and what is in them is no drift.
	Ignored *ignore.Rules
	// Held, if not nil, is asked before drift of an object is corrected, or told, and says whether the object is
	// left as it is. live is nil if it is missing; since is when the deployed revision was made. It has to be
	// safe for concurrent use.
	Held func(ctx context.Context, id manifest.ID, live *unstructured.Unstructured, since time.Time) (bool, error)
}

// Stamp returns the marks that every object of the release carries.
func (i Identity) Stamp() helm.Stamp {
	return helm.Stamp{
		Labels:      map[string]string{v1alpha1.OwnerHashLabel: i.OwnerHash, v1alpha1.ReleaseLabel: i.Name},
		Annotations: map[string]string{v1alpha1.OwnerAnnotation: i.Owner},
	}
}

// String returns namespace/name.
func (i Identity) String() string { return i.Namespace + "/" + i.Name }

// Desired is the desired state of a release.
type Desired struct {
	Identity
	// Chart is not modified and may be shared.
	Chart *chart.Chart
	// ChartDigest identifies the chart.
	ChartDigest string
	// Values are merged over those of the chart by Helm's rules. They are not modified.
	Values map[string]any
	// Claims are the names of PersistentVolumeClaims that the objects have to use, or the release is not
	// installed: they hold data that was restored for it. They are not part of the digest.
	Claims []string
	// Options say how to get there.
	Options Options
	// Unwanted ends the rendering of the chart, when it is closed: until then, no revision was made. nil for
	// never.
	Unwanted <-chan struct{}
	// UntouchedAt, if not nil, returns the resourceVersion of an object whose fields are as the deployed revision
	// has set them, as far as is known without a request; empty if they may not be. An upgrade does not read
	// such an object before it writes it, on condition that it still has that version. It may be called at any
	// time of an action, and must return at once.
	UntouchedAt func(manifest.ID) string
	// Doing, if not nil, is called with what an action waits for, in words, and with nothing when it goes
	// on. It must return at once.
	Doing func(what string)
}

// Options of the actions on a release. The zero value is usable.
type Options struct {
	// Timeout of one action, its hooks included. Default: 5 minutes.
	Timeout time.Duration
	// Atomic uninstalls a failed install, and rolls back a failed upgrade.
	Atomic bool
	// KeepUpgrade leaves a failed upgrade as it is all the same: its caller goes back with the data, by
	// ReturnTo.
	KeepUpgrade bool
	// CRDs says what to do with the CRDs of the chart. Default: Create.
	CRDs v1alpha1.CRDPolicy
	// DisableHooks skips all hooks.
	DisableHooks bool
	// HistoryLimit is how many revisions are kept. Default: 5.
	HistoryLimit int
	// Lookup lets templates look up objects of the cluster, with the rights of the Target. Without it,
	// they find none.
	Lookup bool
	// As names the identity of the Target: another one makes another revision.
	As string
}

const (
	defaultTimeout      = 5 * time.Minute
	defaultHistoryLimit = 5
)

func (o Options) timeout() time.Duration {
	if o.Timeout <= 0 {
		return defaultTimeout
	}
	return o.Timeout
}

// undoes reports whether a revision that an action made is undone if it failed.
func (o Options) undoes(made Action) bool {
	return o.Atomic && (made == ActionInstall || made == ActionUpgrade && !o.KeepUpgrade)
}

func (o Options) historyLimit() int {
	if o.HistoryLimit <= 0 {
		return defaultHistoryLimit
	}
	return o.HistoryLimit
}

// crdInput returns what the CRD policy adds to the digest. CreateReplace was the default once: releases
// made then have its name in their digests, and are not upgraded only because Create is now.
func (o Options) crdInput() string {
	switch o.CRDs {
	case "", v1alpha1.CRDCreate:
		return "CreateReplace"
	case v1alpha1.CRDCreateReplace:
		return "Replace"
	case v1alpha1.CRDSkip:
	}
	return string(o.CRDs)
}

// inputLabel on the record of a release holds `<revision>.<digest>`. Helm copies the labels of one
// revision to the next; because of the number, a revision that a user created by hand is not
// mistaken for ours.
const inputLabel = "apps.waybill.dev/input"

// wentBack takes the place of the digest in the label of a revision that a rollback made. No digest
// is equal to it: what is wanted is another revision.
const wentBack = "rollback"

// inputFormat changes when the same input must be installed again, because different objects are
// now created from it.
const inputFormat = 1

// Digest identifies everything that makes a difference in the cluster: the chart, the values, the
// marks, the CRD policy, and whose rights it has. Two Desired with the same digest need no upgrade between them. It is 40
// hexadecimal digits.
func (d Desired) Digest() (string, error) {
	input := []any{inputFormat, d.ChartDigest, d.Values, d.Owner, d.OwnerHash, d.Name, d.Options.crdInput()}
	if d.Options.Lookup || d.Options.As != "" { // otherwise the digest is that of releases made before there were these
		input = append(input, d.Options.Lookup, d.Options.As)
	}
	data, err := json.Marshal(input)
	if err != nil {
		return "", &Error{Reason: ReasonValues, Err: fmt.Errorf("encode values: %w", err)}
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:20]), nil
}

// recordLabels returns the labels for the record of a revision with that input.
func (i Identity) recordLabels(revision int, digest string) map[string]string {
	return map[string]string{
		v1alpha1.OwnerHashLabel: i.OwnerHash,
		v1alpha1.ReleaseLabel:   i.Name,
		inputLabel:              strconv.Itoa(revision) + "." + digest,
	}
}

// rollbackLabels returns the labels for the record of a revision that a rollback of ours makes. Helm
// passes on those of the revision that it goes back to, by which it would not be ours.
func (i Identity) rollbackLabels(revision int, passedOn map[string]string) map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, passedOn)
	maps.Copy(labels, i.recordLabels(revision, wentBack))
	return labels
}

// inputOf returns the digest in the label of that revision's record, or "" if the label belongs to
// another revision.
func inputOf(revision int, label string) string {
	number, digest, ok := strings.Cut(label, ".")
	if !ok || number != strconv.Itoa(revision) {
		return ""
	}
	return digest
}
