package applicationdefinition

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"waybill.dev/waybill/api/v1alpha1"
)

// action is what a lane does about one copy.
type action int

const (
	// nothing: the copy is as it should be, or there is none and should be none.
	nothing action = iota
	// create: there is no copy. It is applied without force: what appears in between is not
	// taken over.
	create
	// put: the copy is not, or may not be, as it should be.
	put
	// drop: the copy should not be there.
	drop
	// yield: a definition of that name is there that is not ours.
	yield
	// await: the watch has not caught up with our own write.
	await
)

// verified is a copy as we wrote it, or read it as a whole.
type verified struct {
	uid        types.UID
	version    string // resource version
	generation int64
	// hash of the offer that it equals; empty where it equals none.
	hash string
	// at is when it was written; zero where it was read.
	at time.Time
	// rewritten says that the cluster's admission changed labels or annotations: they are
	// not compared then, else they would be written for ever.
	rewritten bool
	// again counts the writes of the same content, each soon after the one before.
	again int
}

// Others may change a copy a few times in a row and it is put right at once; then it takes
// longer and longer, so that a fight does not go on at full speed.
const (
	calm      = 10 * time.Second
	atOnce    = 5
	contestBy = time.Second
)

// contested returns when a copy may be put right again that others keep changing; zero for
// at once.
func (v verified) contested(offered *offer) time.Time {
	if v.hash != offered.hash || v.again < atOnce {
		return time.Time{}
	}
	until := v.at.Add(min(contestBy<<min(v.again-atOnce, 8), maxRetry))
	if time.Now().After(until) {
		return time.Time{}
	}
	return until
}

// next is the record of a write that follows v.
func (v verified) next(written *metav1.PartialObjectMetadata, offered *offer) verified {
	n := verified{
		uid: written.UID, version: written.ResourceVersion, generation: written.Generation,
		hash: offered.hash, at: time.Now(),
		rewritten: !contains(written.Labels, offered.labels) || !contains(written.Annotations, offered.annotations),
	}
	if v.hash == offered.hash && time.Since(v.at) < calm+contestBy<<min(v.again, 8) {
		n.again = v.again + 1
	}
	return n
}

// trust is how long a write is believed that the watch does not show.
const trust = 5 * time.Second

// decide compares what a cluster should have with the metadata of what it has. offered is
// nil where it should have nothing, live is nil where it has nothing, and last is zero where
// the copy was never verified. An edit of the spec by others shows in the generation.
func decide(offered *offer, live *metav1.PartialObjectMetadata, last verified, hubID string) action {
	ours := live != nil && live.Annotations[v1alpha1.CopyOfAnnotation] == hubID
	switch {
	case behind(live, last):
		return await
	case offered == nil && ours:
		return drop
	case offered == nil:
		return nothing
	case live == nil:
		return create
	case !ours:
		if live.UID == last.uid {
			return put // somebody took our mark off our copy
		}
		return yield
	case last.uid != live.UID || last.generation != live.Generation || last.hash != offered.hash:
		return put
	case !last.rewritten && (!contains(live.Labels, offered.labels) || !contains(live.Annotations, offered.annotations)):
		return put
	}
	return nothing
}

// behind says whether live is older than our last write.
func behind(live *metav1.PartialObjectMetadata, last verified) bool {
	if last.at.IsZero() || time.Since(last.at) > trust {
		return false
	}
	if live == nil {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(live.ResourceVersion, last.version)
	return err == nil && order < 0
}

func contains(all, some map[string]string) bool {
	for key, value := range some {
		if found, ok := all[key]; !ok || found != value {
			return false
		}
	}
	return true
}
