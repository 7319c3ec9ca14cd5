package release

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"waybill.dev/waybill/api/v1alpha1"
)

// Observed is what Helm has recorded of a release.
type Observed struct {
	// Revisions in ascending order; none if there is no such release.
	Revisions []Revision
	// Ignored are the names of Secrets that are labelled as records of the release and cannot be.
	Ignored []string
	// At is the time of the observation.
	At time.Time
	// Altered says that the newest record was read and differs from what was noted; Observe itself
	// reads no contents.
	Altered bool
}

// Revision is one record of a release, as its labels describe it.
type Revision struct {
	Number int
	Status helmrelease.Status
	// Input is the Digest of what was installed, or wentBack; empty if the revision is not our work.
	Input string
	// OwnerHash identifies the owner of the release; empty if that is not an owner of ours.
	OwnerHash string
	// Changed is when the record was last written.
	Changed time.Time
	// uid of the record: another of its name is not this one. version is its resourceVersion.
	uid     types.UID
	version string
}

// newest returns the highest revision.
func (o Observed) newest() (Revision, bool) {
	if len(o.Revisions) == 0 {
		return Revision{}, false
	}
	return o.Revisions[len(o.Revisions)-1], true
}

// lastGood returns the highest revision that was installed completely.
func (o Observed) lastGood() (Revision, bool) {
	for _, r := range slices.Backward(o.Revisions) {
		if r.good() {
			return r, true
		}
	}
	return Revision{}, false
}

// good reports whether the revision was installed completely; another may have replaced it since.
func (r Revision) good() bool {
	return r.Status == helmrelease.StatusDeployed || r.Status == helmrelease.StatusSuperseded
}

// deployed returns nil if the newest revision is deployed, and an Error that says what it is
// otherwise.
func (o Observed) deployed(id Identity) error {
	newest, _ := o.newest()
	reason := ReasonNotDeployed
	if newest.Status == helmrelease.StatusDeployed {
		return nil
	}
	if newest.Status == helmrelease.StatusUninstalled || newest.Status == helmrelease.StatusUninstalling {
		reason = ReasonGone
	}
	return &Error{Reason: reason, Err: fmt.Errorf("release %s is %s, and not deployed", id, newest.Status)}
}

// Observe reads the records of a release. It costs one request, which returns metadata only.
func (e *Engine) Observe(ctx context.Context, t Target, id Identity) (Observed, error) {
	client, err := metadata.NewForConfig(t.Config())
	if err != nil {
		return Observed{}, fmt.Errorf("make metadata client: %w", err)
	}
	list, err := client.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(id.Namespace).
		List(ctx, metav1.ListOptions{LabelSelector: labels.Set{labelOwner: recordOwner, labelName: id.Name}.String()})
	if err != nil {
		return Observed{}, &Error{Reason: ReasonUnavailable, Err: fmt.Errorf("read history of release %s: %w", id, err)}
	}
	return observedIn(list.Items, id), nil
}

// observedIn returns what the Secrets with the labels of a release say of it.
func observedIn(records []metav1.PartialObjectMetadata, id Identity) Observed {
	o := Observed{At: time.Now()}
	for i := range records {
		if r, ok := revisionOf(&records[i]); ok && records[i].Name == id.record(r.Number) {
			o.Revisions = append(o.Revisions, r)
		} else {
			o.Ignored = append(o.Ignored, records[i].Name)
		}
	}
	slices.SortFunc(o.Revisions, func(a, b Revision) int { return cmp.Compare(a.Number, b.Number) })
	possible := possible(o.Revisions, id.Known)
	for _, r := range o.Revisions[possible:] {
		o.Ignored = append(o.Ignored, id.record(r.Number))
	}
	o.Revisions = o.Revisions[:possible]
	return o
}

const (
	// maxLeap is how far the number of a revision may be from the one before it, or from what is known:
	// records in between may have been deleted.
	maxLeap = 100
	// maxFirst is the highest number that the oldest revision may have if nothing that is known leads to
	// it, as after a restore without the status.
	maxFirst = 1 << 20
)

// possible returns how many of the revisions, in ascending order, may be what they say. Helm counts from
// 1: a number that nothing leads to was made up, and the next one would count on from it until it
// overflows.
func possible(revisions []Revision, known *v1alpha1.ReleaseStatus) int {
	if len(revisions) == 0 {
		return 0
	}
	last := 0
	if known != nil {
		last = int(known.Revision)
	}
	if first := revisions[0].Number; first > last && first <= maxFirst {
		last = first // what is known is out of date, or gone
	}
	for i, r := range revisions {
		if r.Number > last+maxLeap {
			return i
		}
		last = max(last, r.Number)
	}
	return len(revisions)
}

// record returns the name of the Secret of a revision.
func (i Identity) record(revision int) string {
	return fmt.Sprintf("%s.%s.v%d", storage.HelmStorageType, i.Name, revision)
}

// revisionOf reads the labels that Helm and Waybill put on a record.
func revisionOf(record *metav1.PartialObjectMetadata) (Revision, bool) {
	number, err := strconv.Atoi(record.Labels[labelVersion])
	if err != nil || number < 1 {
		return Revision{}, false
	}
	changed := record.CreationTimestamp.Time
	if seconds, err := strconv.ParseInt(record.Labels[labelModified], 10, 64); err == nil {
		changed = time.Unix(seconds, 0)
	}
	return Revision{
		Number:    number,
		Status:    helmrelease.Status(record.Labels[labelStatus]),
		Input:     inputOf(number, record.Labels[inputLabel]),
		OwnerHash: record.Labels[v1alpha1.OwnerHashLabel],
		Changed:   changed,
		uid:       record.UID,
		version:   record.ResourceVersion,
	}, true
}

// observeOurs observes a release that must exist and be ours.
func (e *Engine) observeOurs(ctx context.Context, t Target, id Identity) (Observed, error) {
	observed, err := e.Observe(ctx, t, id)
	if err != nil {
		return observed, err
	}
	newest, ok := observed.newest()
	switch {
	case !ok:
		return observed, &Error{Reason: ReasonGone, Err: fmt.Errorf("there is no release %s", id)}
	case newest.OwnerHash != id.OwnerHash:
		return observed, &Error{Reason: ReasonConflict, Err: fmt.Errorf("release %s belongs to another owner", id)}
	default:
		return observed, nil
	}
}
