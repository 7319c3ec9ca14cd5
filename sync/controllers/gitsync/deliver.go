package gitsync

import (
	"context"
	"slices"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/deliver/delivery"
	"waybill.dev/waybill/sync/deliver/ignore"
	"waybill.dev/waybill/sync/deliver/inventory"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/reconcile"
)

// want returns what is wanted in the clusters, without the objects.
func (s *scope) want() delivery.Want {
	return delivery.Want{Digest: s.session.desired.digest, LookedAt: s.looked.Ended, Timeout: s.gs.GetTimeout()}
}

// needsDelivery reports whether a cluster needs the objects.
func (s *scope) needsDelivery(t *target) bool { return !t.leaving && t.delivery.Due(s.want()) }

// deliver hands the objects to every cluster that needs them, and deletes everything from those
// that are leaving. It is done when no job is left.
func (r *Reconciler) deliver(ctx context.Context, s *scope) error {
	if err := r.announce(ctx, s); err != nil {
		return err
	}
	ignored, err := ignore.CompileForSync(s.gs.Spec.IgnoreDifferences)
	if err != nil {
		return reconcile.Stalled(v1alpha1.InvalidSpecReason, "%w", err)
	}
	for _, t := range s.targets() {
		switch {
		case t.leaving && s.inherited(t):
			r.forgetTarget(s, t)
		case !t.state.Usable():
		case t.leaving:
			r.takeOut(s, t)
		case t.state.Busy():
			s.pending = true
		case s.needsDelivery(t) && s.session.desired.rendered != nil:
			r.handOver(s, t, ignored)
		}
	}
	if err := s.tellProgress(ctx); err != nil {
		return err
	}
	return s.show(ctx)
}

// announce writes the clusters into the status before anything is delivered to a further one: only
// the name of the cluster there shows the next process, and those that wait for the cluster to be
// left, that something may be in it.
func (r *Reconciler) announce(ctx context.Context, s *scope) error {
	clusters := s.clusterStatuses()
	if clusters == nil || s.session.desired.rendered == nil || !slices.ContainsFunc(s.targets(), s.isNews) {
		return nil
	}
	return r.intend(s).show(ctx, clusters)
}

// isNews reports whether a cluster is about to be delivered to that the status does not name.
func (s *scope) isNews(t *target) bool {
	named := func(c v1alpha1.GitSyncClusterStatus) bool { return c.Name == t.name }
	return s.needsDelivery(t) && !slices.ContainsFunc(s.gs.Status.Clusters, named)
}

func (r *Reconciler) handOver(s *scope, t *target, ignored *ignore.Rules) {
	got, intent := s.session.desired.rendered, r.intend(s)
	request := apply.Request{
		Owner:            r.owner(s.gs),
		Objects:          got.objects,
		DefaultNamespace: s.gs.GetDefaultNamespace(),
		Health:           s.gs.Spec.Wait,
		Intent:           intent.declare,
		Prune:            s.gs.GetPrune(),
		Unread:           got.problems,
		Adopt:            s.gs.Spec.Adopt,
		Force:            s.gs.Spec.Force,
		Ignored:          ignored,
		Survey:           true,
		Held:             s.held(t),
		Digest:           t.achieved.applied,
	}
	applier, counts, want := t.delivery.Applier(), t.delivery.Progress(), s.want()
	request.Progress = counts
	want.Work = func(ctx context.Context) apply.Result {
		request.Inventory = intent.known()
		return withinTimeout(ctx, applier.Apply(ctx, request), counts, want.Timeout)
	}
	t.definitions.begin()
	t.state = t.delivery.Set(want)
	s.pending = s.pending || t.state.Busy()
}

// collect derives from the results of all clusters what is delivered now.
func (r *Reconciler) collect(ctx context.Context, s *scope) error {
	if !s.session.record.uncollected {
		return nil
	}
	s.session.record.settle()
	s.awaitArrivals(ctx)
	complete := true
	var delivered []manifest.ID
	for _, t := range s.targets() {
		tried := t.state.Digest != "" && (t.leaving || t.state.Digest == s.session.desired.digest)
		complete = complete && t.state.Usable() && tried && t.state.Result.Err == nil
		delivered = inventory.Merge(delivered, t.state.Result.Inventory)
	}
	if !complete {
		delivered = inventory.Merge(s.session.record.inventory, delivered)
	}
	lacks := func(t *target) bool {
		return t.state.Digest != s.session.desired.digest && t.state.Usable() && !t.leaving
	}
	if !slices.ContainsFunc(s.targets(), lacks) {
		s.session.desired.rendered = nil
	}
	return r.saveInventory(ctx, s, delivered)
}
