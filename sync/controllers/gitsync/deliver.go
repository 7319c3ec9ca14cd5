package gitsync

import (
	"context"
	"maps"
	"slices"

	ctrl "sigs.k8s.io/controller-runtime"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/apply"
	"waybill.dev/waybill/sync/apply/inventory"
	"waybill.dev/waybill/sync/ignore"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/reconcile"
)

// targets returns the targets sorted by name, so that everything that lists them is stable.
func (s *scope) targets() []*target {
	sorted := make([]*target, 0, len(s.session.targets))
	for _, name := range slices.Sorted(maps.Keys(s.session.targets)) {
		sorted = append(sorted, s.session.targets[name])
	}
	return sorted
}

// needsDelivery reports whether a cluster needs the objects: it never got them, a failed delivery
// is due again, others changed an object, something that it waited for is there, or it is time to
// check what cannot be watched.
func (s *scope) needsDelivery(t *target) bool {
	switch {
	case t.applier == nil || t.leaving:
		return false
	case t.attempted != s.session.digest || t.delivering:
		return true
	case s.retryDue(t), s.unwatchedDue(t):
		return true
	default:
		return t.told != t.toldBefore && s.isDriftDue(t)
	}
}

// deliver hands the objects to every cluster that needs them, and deletes everything from those
// that are leaving. It is done when no job is left.
func (r *Reconciler) deliver(ctx context.Context, s *scope) error {
	if err := r.announce(ctx, s); err != nil {
		return err
	}
	ignored, err := ignore.Compile(s.gs.Spec.IgnoreDifferences)
	if err != nil {
		return reconcile.Stalled(v1alpha1.InvalidSpecReason, "%w", err)
	}
	for _, t := range s.targets() {
		switch {
		case t.leaving && s.inherited(t):
			r.forgetTarget(s, t)
		case t.applier == nil:
		case t.leaving:
			r.takeOut(s, t)
		case s.needsDelivery(t) && s.session.rendered != nil:
			r.handOver(s, t, ignored)
		}
	}
	if err := s.tellProgress(ctx); err != nil {
		return err
	}
	return s.show(ctx)
}

// announce writes the clusters into the status before anything is delivered to a further one: that a
// cluster is named there is all that tells the next process, and whoever waits for the cluster to be
// left, that something may be in it.
func (r *Reconciler) announce(ctx context.Context, s *scope) error {
	clusters := s.clusterStatuses()
	if clusters == nil || s.session.rendered == nil || !slices.ContainsFunc(s.targets(), s.isNews) {
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
	got, intent := s.session.rendered, r.intend(s)
	request := apply.Request{
		Owner:            s.apply,
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
		Digest:           t.applied,
	}
	r.begin(s, t)
	applier, timeout, progress := t.applier, s.gs.GetTimeout(), t.progress
	request.Progress = &progress.counts
	result, done := r.delivers.Do(t.lane(), targetKey{s.session.key, t.name}, s.session.digest, func(ctx context.Context) apply.Result {
		defer progress.shown.Begin()()
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		request.Inventory = intent.known()
		return progress.withinTimeout(ctx, applier.Apply(ctx, request), timeout)
	})
	if !done {
		s.pending = true
		return
	}
	if t.applied == "" || !t.ended || t.delivered != s.session.digest { // no correction is worth a write of the status
		t.applied = applier.Digest(s.apply)
	}
	t.attempted, t.result, t.ended = s.session.digest, result, true
	t.fights.note(result.Changes, s.now, r.kernel.Backoff)
	s.tellRecreated(t, result.Changes)
	r.end(s, t)
	if t.delivered = ""; result.Err == nil && len(result.Problems) == 0 && len(result.Waiting) == 0 {
		t.revision, t.delivered = s.session.source.revision.String(), s.session.digest
	}
}

// begin records, before a job, how many changes by others and how many arrivals the cluster has
// reported.
func (r *Reconciler) begin(s *scope, t *target) {
	if t.progress == nil {
		t.progress = r.newProgress(s.session.key)
	}
	if !t.delivering {
		t.delivering, t.tried = true, s.now
		t.toldBefore = r.told.Rings(toldKey{s.session.key.NamespacedName, t.name})
		t.arrivedBefore = r.arrivals.count(t.base)
	}
}

// end wakes the GitSync once more if the cluster reported a change while the job ran: the wake-up
// for that change coincided with the end of the job.
func (r *Reconciler) end(s *scope, t *target) {
	t.delivering, s.delivered, s.session.uncollected = false, true, true
	if r.told.Rings(toldKey{s.session.key.NamespacedName, t.name}) != t.toldBefore {
		r.waker.Wake(ctrl.Request{NamespacedName: s.session.key.NamespacedName})
	}
}

// lane keeps clusters apart: one that hangs holds up only its own deliveries.
func (t *target) lane() string { return t.cluster.Name().String() }

// collect derives from the results of all clusters what is delivered now and whether anything must
// be retried.
func (r *Reconciler) collect(ctx context.Context, s *scope) error {
	if !s.session.uncollected {
		return nil
	}
	s.settle()
	r.awaitArrivals(ctx, s)
	failed, complete := false, true
	var delivered []manifest.ID
	for _, t := range s.targets() {
		failed = failed || t.result.Err != nil || len(t.result.Problems) > 0
		complete = complete && t.applier != nil && t.result.Err == nil && t.attempted != "" && (t.leaving || t.attempted == s.session.digest)
		delivered = inventory.Merge(delivered, t.result.Inventory)
	}
	if !complete {
		delivered = inventory.Merge(s.session.inventory, delivered)
	}
	if failed {
		s.session.retry.Failed(r.kernel.Backoff)
	} else {
		s.session.retry = reconcile.Retry{}
	}
	if !slices.ContainsFunc(s.targets(), func(t *target) bool { return t.attempted != s.session.digest && t.applier != nil && !t.leaving }) {
		s.session.rendered = nil
	}
	return r.saveInventory(ctx, s, delivered)
}
