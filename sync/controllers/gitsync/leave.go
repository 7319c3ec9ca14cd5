package gitsync

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/deliver/delivery"
	"waybill.dev/waybill/sync/manifest"
)

// leave marks a target as leaving, or forgets it if its KubernetesCluster is gone, or goes without
// waiting for anything: what happens to the objects in a deleted cluster is decided by its
// spec.onDelete.
func (r *Reconciler) leave(ctx context.Context, s *scope, t *target) error {
	t.leaving = true
	var kc *v1alpha1.KubernetesCluster
	if t.name != "" {
		kc = &v1alpha1.KubernetesCluster{}
		err := r.Client.Get(ctx, types.NamespacedName{Namespace: s.gs.Namespace, Name: t.name}, kc)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("get cluster %s: %w", t.name, err)
		}
		if err != nil || !kc.DeletionTimestamp.IsZero() && kc.GetOnDelete() == v1alpha1.DeleteAbandon {
			r.forgetTarget(s, t)
			return nil
		}
		t.identify(kc)
	}
	r.engage(s, t, kc)
	return nil
}

// leavingLook is how often a cluster that is being left is checked even though events should
// announce the progress: the right to watch the objects may go before they do.
const leavingLook = time.Minute

// takeOut deletes what was delivered to a cluster that is being left. It is done when nothing is left there.
func (r *Reconciler) takeOut(s *scope, t *target) {
	if !s.gs.GetPrune() {
		r.forgetTarget(s, t)
		return
	}
	if s.unidentified.After(s.now) {
		// What is delivered there now has not declared everything before it ends.
		s.pending = s.pending || t.state.Busy()
		return
	}
	input := fmt.Sprintf("delete %d %q, the namespace goes: %t",
		s.gs.Generation, s.gs.Annotations[v1alpha1.ReconcileAtAnnotation], s.namespaceGoes)
	applier, owner, toTakeOut, timeout := t.delivery.Applier(), r.owner(s.gs), s.toTakeOut(t), s.gs.GetTimeout()
	t.state = t.delivery.Set(delivery.Want{
		Digest: input, Timeout: timeout, Every: leavingLook, LookedAt: s.looked.Ended,
		Work: func(ctx context.Context) apply.Result {
			result := applier.Delete(ctx, owner, toTakeOut())
			if timedOut(ctx, result) {
				result.Err = fmt.Errorf("deleting took longer than spec.timeout (%s), and is continued; increase spec.timeout to give it more time", timeout)
			}
			return result
		},
	})
	switch {
	case t.state.Busy():
		s.pending = true
	case t.state.Digest == input && !t.state.Failed() && len(t.state.Result.Inventory) == 0:
		r.forgetTarget(s, t)
	}
}

// toTakeOut returns a function for a job that returns the objects to delete from a target.
func (s *scope) toTakeOut(t *target) func() []manifest.ID {
	known, namespace := s.session.record.knownThen(), s.gs.Namespace
	if t.name != "" || !s.namespaceGoes {
		return known
	}
	return func() []manifest.ID {
		return slices.DeleteFunc(slices.Clone(known()), func(id manifest.ID) bool { return id.Namespace == namespace })
	}
}

// identify takes over what is known of the identity of a cluster that may not have been engaged yet.
func (t *target) identify(kc *v1alpha1.KubernetesCluster) {
	if kc != nil && kc.Status.UID != "" {
		t.is(kc.Status.UID)
	}
}

// is notes the identity of a cluster. In another one than before, nothing was delivered.
func (t *target) is(uid string) {
	if t.uid != "" && t.uid != uid {
		t.achieved.outdated()
	}
	t.uid = uid
}

// newcomer is for how long it is waited for the identity of a new KubernetesCluster before anything
// is taken out of another: it may be a new name of that one.
const newcomer = time.Minute

// expectIdentity notes until when the identity of a selected cluster is waited for.
func (s *scope) expectIdentity(t *target, kc *v1alpha1.KubernetesCluster) {
	if t.uid != "" || kc == nil {
		return
	}
	if until := kc.CreationTimestamp.Add(newcomer); until.After(s.unidentified) {
		s.unidentified = until
	}
}

// inherited reports whether a cluster that is being left is delivered to under another name. What
// was delivered there stays, and is maintained under that name.
func (s *scope) inherited(t *target) bool {
	for _, other := range s.session.targets {
		if !other.leaving && other.uid != "" && other.uid == t.uid {
			return true
		}
	}
	return false
}
