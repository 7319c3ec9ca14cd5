package sourcecredential

import (
	"context"
	"errors"
	"slices"
	"time"

	"waybill.dev/waybill/sync/apply"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/content"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/reconcile"
)

// timeout bounds the delivery of one Secret.
const timeout = time.Minute

// credential is a Secret that is copied, or was.
type credential struct {
	// inventory has the copies that there are or may be.
	inventory []manifest.ID
	// attempted is the digest of what was delivered last; empty before that.
	attempted string
	result    apply.Result
	retry     reconcile.Retry
	fight     reconcile.Fight
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
func (c *credential) failed() bool { return c.result.Err != nil || len(c.result.Problems) > 0 }

// tryAgain has what failed tried again now.
func (c *credential) tryAgain() {
	if c.failed() {
		c.retry.At = time.Now()
	}
}

// isDue reports whether there is anything to do: what is wanted has changed, it is time to try again, or
// others have changed a copy. Those who change one again and again are corrected after ever longer pauses.
func (c *credential) isDue(l *lane, name string, wanted *wanted, told bool) bool {
	now := time.Now()
	if c.attempted != wanted.digest() {
		c.retry, c.fight = reconcile.Retry{}, reconcile.Fight{}
		return true
	}
	if c.retry.Due(now) {
		return true
	}
	if !told {
		return false
	}
	if seen, known := l.applier.Observe(l.r.owner(name)); known && seen.Settled {
		return false
	}
	if pause := c.fight.Due(); pause.After(now) {
		c.retry.At = pause
		return false
	}
	return true
}

// deliver writes the copies that are wanted, and deletes those that are not.
func (c *credential) deliver(ctx context.Context, l *lane, name string, wanted *wanted) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request := apply.Request{
		Owner: l.r.owner(name), Objects: wanted.objects(), Inventory: c.inventory,
		Prune: true, Unkept: c.inventory, // whoever may edit a copy cannot keep it
		Force: true, // the type of a Secret cannot be changed
	}
	got := l.applier.Apply(ctx, request)
	c.inventory, c.attempted, c.result = got.Inventory, wanted.digest(), got
	if slices.ContainsFunc(got.Changes, func(change apply.Change) bool { return change.Action == apply.Corrected || change.Again }) {
		c.fight.Corrected(time.Now(), l.r.kernel.Backoff)
	}
	switch {
	case errors.Is(got.Err, cluster.ErrUnreachable), errors.Is(got.Err, cluster.ErrNotEngaged):
		c.retry.At = time.Time{} // an event follows when it is back
	case got.Err != nil, slices.ContainsFunc(got.Problems, func(p manifest.Problem) bool { return !slices.Contains(got.Waiting, p.ID) }):
		c.retry.Failed(l.r.kernel.Backoff)
	case got.Unseen:
		c.retry.At = time.Now().Add(maxBackoff)
	default:
		c.retry = reconcile.Retry{}
	}
}
