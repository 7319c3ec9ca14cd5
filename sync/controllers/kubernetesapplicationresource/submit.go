package kubernetesapplicationresource

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/apply/inventory"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/reconcile"
)

// jobTimeout bounds one job in a cluster.
const jobTimeout = time.Minute

// submit applies the object and the copies of its Secrets, if the cluster does not have them as
// they should be. An object is not submitted before all of its Secrets are there; one that is in
// the cluster already is kept as it is templated all the same. Once anything was tried, the job
// decides that: there may be copies to take back, whatever became of the object.
func (r *Reconciler) submit(_ context.Context, s *scope) error {
	if err := s.withheld(); err != nil && !s.placed() && !s.session.working && len(s.inventory()) == 0 {
		return err
	}
	s.digest = s.inputDigest()
	if !r.needsWork(s) {
		return nil
	}
	work := r.plan(s)
	if !r.do(s, s.digest, work.submit) {
		outcome := s.pending()
		s.outcome = &outcome
		return nil
	}
	s.session.attempted = s.digest
	return nil
}

// placed reports whether the object was once submitted with its Secrets: then it has a namespace.
// An entry in the inventory means only that it was tried.
func (s *scope) placed() bool {
	return s.kar.Status.Namespace != "" || s.last != nil && s.last.placed
}

// inventory returns what, according to the status and the last job, is in the cluster or may be.
func (s *scope) inventory() []manifest.ID {
	var ids []manifest.ID
	if s.kar.Status.Inventory != nil {
		// Entries that cannot be read were not written by us; what we delivered is found again from the
		// spec.
		ids, _ = inventory.Decode(s.kar.Status.Inventory.Entries)
	}
	if s.last != nil {
		ids = inventory.Merge(ids, s.last.inventory)
	}
	return ids
}

// held returns the holds that are known, according to the last job or the status.
func (s *scope) held() []v1alpha1.Hold {
	if s.last != nil && s.last.looked {
		return s.last.held
	}
	return s.kar.Status.Held
}

// inputDigest returns a digest that changes with everything that makes a difference in the cluster,
// and with the annotation that asks for another try.
func (s *scope) inputDigest() string {
	h := sha256.New()
	for _, text := range []string{
		string(s.kar.UID),
		s.kar.Annotations[v1alpha1.AdoptAnnotation],
		s.kar.Annotations[v1alpha1.ReconcileAtAnnotation],
		string(s.kar.Spec.Template.Raw),
	} {
		fmt.Fprintf(h, "%d:%s", len(text), text)
	}
	for _, source := range s.secrets {
		fmt.Fprintf(h, "%q %q %s", source.name, source.content.Type, source.content.Hash)
	}
	fmt.Fprintf(h, "%q %q %q", s.missing, s.barred, s.disowned)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// needsWork reports whether there is anything to do in the cluster: the input has changed, a
// failure is due for another try, somebody changed what was delivered, or something that was waited
// for is there. Changes that are repeated again and again are corrected after ever longer pauses.
func (r *Reconciler) needsWork(s *scope) bool {
	switch {
	case s.session.isDue(s.digest):
		return true
	case !r.toldMore(s):
		return false
	}
	if seen, known := s.session.applier.Observe(s.owner); known && seen.Settled {
		return false
	}
	if due := s.session.fight.Due(); due.After(time.Now()) {
		s.session.retry.At = due
		return false
	}
	return true
}

// toldMore reports whether the cluster has notified us of a change by others since the last job
// began.
func (r *Reconciler) toldMore(s *scope) bool {
	return r.told.Rings(s.session.key.NamespacedName) != s.session.toldBefore
}

// do runs a job in the lane of the cluster and records its result; it returns false while the job
// runs. If the cluster notified us of a change by others meanwhile, the resource is woken once
// more, because the wake for that change was spent on the end of the job.
func (r *Reconciler) do(s *scope, input string, work func(context.Context) submission) bool {
	name := s.session.key.NamespacedName
	if !s.session.working {
		s.session.working, s.session.toldBefore = true, r.told.Rings(name)
	}
	got, done := r.jobs.Do(s.clusterKey().String(), s.session.key, input, func(ctx context.Context) submission {
		ctx, cancel := context.WithTimeout(ctx, jobTimeout)
		defer cancel()
		return work(ctx)
	})
	if !done {
		return false
	}
	s.session.working, s.session.result = false, got
	switch {
	case got.corrected:
		s.session.fight.Corrected(time.Now(), r.kernel.Backoff)
	case s.session.attempted != s.digest:
		s.session.fight = reconcile.Fight{}
	}
	if r.toldMore(s) {
		r.waker.Wake(ctrl.Request{NamespacedName: name})
	}
	switch {
	case got.worthRetrying():
		s.session.retry.Failed(r.kernel.Backoff)
	case got.unseen:
		s.session.unwatched()
	case got.unannounced:
		s.session.unannounced()
	default:
		s.session.succeeded()
	}
	return true
}

// worthRetrying reports whether something failed for a reason whose end no event will announce.
func (got submission) worthRetrying() bool {
	if got.err != nil {
		return !reconcile.IsStalled(got.err)
	}
	return slices.ContainsFunc(got.problems, func(p manifest.Problem) bool { return !slices.Contains(got.waiting, p.ID) })
}
