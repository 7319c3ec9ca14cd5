package applicationdefinition

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster/watch"
	"waybill.dev/waybill/sync/reconcile"
)

// action is what is done with one copy.
type action int

const (
	// nothing: the copy is as it should be, or there is none and there should be none.
	nothing action = iota
	// create: there is no copy. It is applied without force, so that an object created in the
	// meantime is not taken over.
	create
	// put: the copy is not, or may not be, as it should be.
	put
	// report: the copy is as it should be, except for its status.
	report
	// drop: the copy should not be there.
	drop
	// yield: there is a definition of that name that is not ours.
	yield
	// await: the watch has not caught up with our own write.
	await
)

// verified is a copy as we wrote it, or read it in full.
type verified struct {
	uid        types.UID
	version    string // resource version
	generation int64
	// hash of the offer that it is equal to; empty if it is equal to none.
	hash string
	// bodyHash is that of the body that was written; empty if it was read.
	bodyHash string
	// at is when it was written; zero if it was read.
	at time.Time
	// rewritten is true if the cluster's admission changed labels or annotations. They are not
	// compared then, or they would be written again and again.
	rewritten bool
	// drift is that with others who keep changing the copy.
	drift reconcile.DriftConflict
}

// pause returns how long a copy that others keep changing is to be left alone; zero if it may be corrected.
func (v verified) pause(offered *form) time.Duration {
	if v.hash != offered.hash {
		return 0
	}
	return max(time.Until(v.drift.Due()), 0)
}

// next returns the record of a write that follows v.
func (v verified) next(written *metav1.PartialObjectMetadata, offered *form, backoff func(failures int) time.Duration) verified {
	n := verified{
		uid: written.UID, version: written.ResourceVersion, generation: written.Generation,
		hash: offered.hash, bodyHash: offered.bodyHash, at: time.Now(),
		rewritten: !contains(written.Labels, offered.labels) || !contains(written.Annotations, offered.annotations),
	}
	if v.hash == offered.hash {
		n.drift = v.drift
		n.drift.Corrected(n.at, backoff)
	}
	return n
}

// trust is how long we rely on a write that the watch does not show.
const trust = 5 * time.Second

// decide compares the desired copy in a cluster with the metadata of the actual one. offered is nil
// if there should be none, live is nil if there is none, and last is zero if the copy was never
// verified. If others edit the spec, the generation changes.
func decide(offered *form, live *metav1.PartialObjectMetadata, last verified, hubID string) action {
	ours := live != nil && live.Annotations[v1alpha1.CopyOfAnnotation] == hubID
	gone := offered == nil || offered.going
	switch {
	case behind(live, last):
		return await
	case offered == nil && ours && live.DeletionTimestamp.IsZero():
		return drop
	case offered == nil, gone && !ours:
		return nothing
	case live == nil:
		return create
	case !ours:
		if live.UID == last.uid || offered.adopts(live) {
			return put // our mark was removed from our copy, or it becomes our copy
		}
		return yield
	case last.uid != live.UID || last.generation != live.Generation || last.hash != offered.hash && last.bodyHash != offered.bodyHash:
		return put
	case !last.rewritten && (!contains(live.Labels, offered.labels) || !contains(live.Annotations, offered.annotations)):
		return put
	case offered.forced != live.Annotations[v1alpha1.ForceRemoveAnnotation]:
		return put // a value of another writer would remove versions that are in use
	case last.hash != offered.hash:
		return report
	case offered.going && live.DeletionTimestamp.IsZero():
		return drop // only now that it has force-remove, if it is to go by force
	}
	return nothing
}

// adopts reports whether a definition becomes the copy: that of another hub, and one that something else
// delivers, do not.
func (f *form) adopts(live *metav1.PartialObjectMetadata) bool {
	_, copied := live.Annotations[v1alpha1.CopyOfAnnotation]
	return f.adopt && !copied && live.Annotations[v1alpha1.OwnerAnnotation] == ""
}

// behind reports whether live is older than our last write.
func behind(live *metav1.PartialObjectMetadata, last verified) bool {
	if last.at.IsZero() || time.Since(last.at) > trust {
		return false
	}
	return live == nil || watch.Older(live.ResourceVersion, last.version)
}

func contains(all, some map[string]string) bool {
	for key, value := range some {
		if found, ok := all[key]; !ok || found != value {
			return false
		}
	}
	return true
}
