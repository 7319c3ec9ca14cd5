package release

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/metadata"

	"waybill.dev/waybill/sync/keyed"
)

// Resume reports whether a release is as desired, and its records are what was noted of it: the newest
// one is the noted one, at the version that was noted, so that it need not be read. It is for the first
// reconciliation after a start, when those of many releases come at once: one list of a namespace, which may be
// resumeWindow old, answers for all that are in it. If Resume returns false, Ensure finds out what is the matter.
func (e *Engine) Resume(ctx context.Context, t Target, d Desired) bool {
	known := d.Known
	if known == nil || known.StoredVersion == "" {
		return false
	}
	digest, err := d.Digest()
	if err != nil {
		return false
	}
	records, ok := e.resuming.of(ctx, t, d.Identity)
	if !ok {
		return false
	}
	observed := observedIn(records, d.Identity)
	newest, ok := observed.newest()
	return ok && len(observed.Ignored) == 0 && newest.Number == int(known.Revision) && newest.version == known.StoredVersion &&
		Decide(observed, d.Identity, digest).Action == ActionNone
}

const (
	// resumeWindow is how long a list of records answers for releases that are looked at for the first time.
	resumeWindow = 30 * time.Second

	// resumePage is how many records are read at a time, and maxResumed how many are kept of a namespace:
	// where there are more, each release lists its own.
	resumePage = 500
	maxResumed = 10_000
)

// resumptions has the lists of records that were read for Resume.
type resumptions struct {
	lists keyed.Map[resumption, *recordList]
}

// resumption is a namespace as an identity sees it.
type resumption struct {
	target    Target
	namespace string
}

// recordList is a list of the records in a namespace.
type recordList struct {
	// read is closed when it was read.
	read chan struct{}
	// byName has the records by release; none if they could not be read. Each release takes its own once: what it
	// gets later must be newer.
	byName keyed.Map[string, []metav1.PartialObjectMetadata]
}

// of returns the records of a release, once; false if they are not known.
func (r *resumptions) of(ctx context.Context, t Target, id Identity) ([]metav1.PartialObjectMetadata, bool) {
	key, begun := resumption{t, id.Namespace}, true
	list := r.lists.Of(key, func() *recordList {
		begun = false
		time.AfterFunc(resumeWindow, func() { r.lists.Drop(key) })
		return &recordList{read: make(chan struct{})}
	})
	if !begun {
		list.byName.Replace(readRecords(ctx, key))
		close(list.read)
	}
	select {
	case <-list.read:
	case <-ctx.Done():
		return nil, false
	}
	records := list.byName.Change(id.Name, func([]metav1.PartialObjectMetadata) ([]metav1.PartialObjectMetadata, bool) { return nil, false })
	return records, len(records) > 0
}

// readRecords returns the records in a namespace by release, of which it keeps what is looked at; nil if
// they cannot be read, or are too many.
func readRecords(ctx context.Context, of resumption) map[string][]metav1.PartialObjectMetadata {
	client, err := metadata.NewForConfig(of.target.Config())
	if err != nil {
		return nil
	}
	byName := map[string][]metav1.PartialObjectMetadata{}
	options := metav1.ListOptions{LabelSelector: labels.Set{labelOwner: recordOwner}.String(), Limit: resumePage}
	for range maxResumed / resumePage {
		page, err := client.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(of.namespace).List(ctx, options)
		if err != nil {
			return nil
		}
		for _, o := range page.Items {
			name := o.Labels[labelName]
			byName[name] = append(byName[name], metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion, CreationTimestamp: o.CreationTimestamp, Labels: o.Labels,
			}})
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return byName
		}
	}
	return nil
}
