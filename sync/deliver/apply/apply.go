package apply

import (
	"context"

	"waybill.dev/waybill/sync/cluster/watch"
	"waybill.dev/waybill/sync/manifest"
)

// Apply brings the cluster to what a request wants: it applies Namespaces and
// CustomResourceDefinitions first, then everything else in parallel, and then deletes what is no
// longer wanted. Objects that are as they should be cost no request. An object that cannot be
// applied does not stop the others.
func (a *Applier) Apply(ctx context.Context, request Request) Result {
	ctx, cancel := a.bind(ctx)
	defer cancel()
	r, err := a.newRun(ctx, request)
	if err != nil {
		return Result{Inventory: request.Inventory, Held: request.Held, Err: watch.Stable(err)}
	}
	defer r.holder.release()
	r.holder.health.Store(request.Health || r.holder.watched.Load().wantsHealth())
	r.prepare()
	r.takeOver(ctx)
	r.deliver(ctx)
	r.prune(ctx)
	r.survey()
	result := r.finish()
	a.explain(ctx, &result)
	return result
}

// Delete deletes what was delivered for an owner and still belongs to it: namespaced objects first,
// then cluster-scoped ones, Namespaces and CustomResourceDefinitions last. Result.Inventory is what
// is left, because it is still terminating or could not be deleted; Notify is called when some of
// it is gone.
func (a *Applier) Delete(ctx context.Context, owner Owner, ids []manifest.ID) Result {
	return a.DeleteAs(ctx, owner, ids, nil)
}

// DeleteAs is like Delete, under the identities of Request.As.
func (a *Applier) DeleteAs(ctx context.Context, owner Owner, ids []manifest.ID, as func(manifest.ID) Target) Result {
	ctx, cancel := a.bind(ctx)
	defer cancel()
	r, err := a.newRun(ctx, Request{Owner: owner, Inventory: ids, Prune: true, As: as})
	if err != nil {
		return Result{Inventory: ids, Err: watch.Stable(err)}
	}
	defer r.holder.release()
	r.prune(ctx)
	result := r.finish()
	a.explain(ctx, &result)
	return result
}

// bind returns a context for a call that also ends when the Applier does.
func (a *Applier) bind(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(a.ctx, func() { cancel(context.Cause(a.ctx)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}
