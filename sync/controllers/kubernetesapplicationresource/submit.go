package kubernetesapplicationresource

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/deliver/delivery"
	"waybill.dev/waybill/sync/deliver/inventory"
	"waybill.dev/waybill/sync/manifest"
)

// jobTimeout bounds one job in a cluster.
const jobTimeout = time.Minute

// submit applies the object and the copies of its Secrets, if the cluster does not have them as
// they should be. An object is not submitted before all of its Secrets are there; one that is in
// the cluster already is kept as it is templated all the same. Once anything was tried, the job
// decides that: there may be copies to take back, whatever became of the object.
func (r *Reconciler) submit(_ context.Context, s *scope) error {
	if err := s.withheld(); err != nil && !s.placed() && !s.state.Busy() && len(s.inventory()) == 0 {
		return err
	}
	if r.do(s, s.inputDigest(), (*work).submit); s.state.Busy() {
		outcome := s.pending()
		s.outcome = &outcome
	}
	return nil
}

// do has a job done in the cluster, if one with that digest is due.
func (r *Reconciler) do(s *scope, digest string, job func(*work, context.Context) apply.Result) {
	want := delivery.Want{Digest: digest, Timeout: jobTimeout}
	if s.session.delivery.Due(want) {
		w := r.plan(s)
		want.Work = func(ctx context.Context) apply.Result { return job(w, ctx) }
	}
	s.state = s.session.delivery.Set(want)
}

// placed reports whether the object was once submitted with its Secrets: then it has a namespace.
// An entry in the inventory means only that it was tried.
func (s *scope) placed() bool { return s.kar.Status.Namespace != "" || s.session.placed }

// inventory returns what, according to the status and the jobs, is in the cluster or may be.
func (s *scope) inventory() []manifest.ID {
	var ids []manifest.ID
	if s.kar.Status.Inventory != nil {
		// Entries that cannot be read were not written by us; what we delivered is found again from the
		// spec.
		ids, _ = inventory.Decode(s.kar.Status.Inventory.Entries)
	}
	if s.session == nil {
		return ids // an index asks, which knows of the status alone
	}
	return s.session.delivery.Declared(ids)
}

// held returns the holds that are known, according to the last job or the status.
func (s *scope) held() []v1alpha1.Hold {
	if s.state.Ended && s.state.Result.Inventory != nil {
		return s.state.Result.Held
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
