package sourcecredential

import (
	"context"
	"slices"
	"time"

	"waybill.dev/waybill/sync/cluster/content"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/reconcile"
)

// timeout bounds the delivery of one Secret.
const timeout = time.Minute

// copied is what is known of a Secret that is copied, or was.
type copied struct {
	// inventory has the copies that there are or may be.
	inventory []manifest.ID
	// attempted is the digest of what was delivered last; empty before that.
	attempted string
	result    apply.Result
	// drift is that with others who keep changing a copy.
	drift reconcile.DriftConflict
}

// owner returns the owner that the copies of a Secret are marked with. It is the original, not the
// KubernetesCluster: that may be created again under another name.
func (r *Reconciler) owner(name string) apply.Owner {
	return apply.Owner{HubID: r.HubID, Kind: string(content.Secret), Namespace: r.SystemNamespace, Name: name}
}

func copyID(namespace, name string) manifest.ID {
	return manifest.ID{Version: "v1", Kind: string(content.Secret), Namespace: namespace, Name: name}
}

// failed reports whether not everything is as it should be.
func (c copied) failed() bool { return c.result.Err != nil || len(c.result.Problems) > 0 }

// refused reports whether a copy has a problem that no event resolves.
func (c copied) refused() bool {
	return slices.ContainsFunc(c.result.Problems, func(p manifest.Problem) bool { return !slices.Contains(c.result.Waiting, p.ID) })
}

// deliver writes the copies that are wanted, and deletes those that are not.
func (c *copier) deliver(ctx context.Context, name string, last copied, wanted *wanted) copied {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	got := c.applier.Apply(ctx, apply.Request{
		Owner: c.r.owner(name), Objects: wanted.objects(), Inventory: last.inventory,
		Prune: true, Unkept: last.inventory, // an edit of a copy must not keep it
		Force: true, // the type of a Secret cannot be changed
	})
	if slices.ContainsFunc(got.Changes, func(change apply.Change) bool { return change.Action == apply.Corrected || change.Again }) {
		last.drift.Corrected(time.Now(), c.r.kernel.Backoff)
	}
	return copied{inventory: got.Inventory, attempted: wanted.digest(), result: got, drift: last.drift}
}
