package gitsync

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/apply"
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

// leavingLook is how often a cluster that is being left is looked at even though events should
// announce the progress: the right to watch the objects may go before they do.
const leavingLook = time.Minute

// needsTakeOut reports whether there is something to do in a cluster that is being left: it was not
// done yet as it is to be done now, it is due again, or something that it waited for has happened.
// Otherwise clusters whose jobs end at different times would keep each other at work.
func (s *scope) needsTakeOut(t *target, input string) bool {
	switch {
	case t.attempted != input || t.delivering || t.told != t.toldBefore:
		return true
	default:
		return s.retryDue(t) || s.unwatchedDue(t) || !s.now.Before(t.tried.Add(leavingLook))
	}
}

// takeOut deletes what was delivered to a cluster that is being left, as far as that is needed.
func (r *Reconciler) takeOut(s *scope, t *target) {
	if !s.gs.GetPrune() {
		r.forgetTarget(s, t)
		return
	}
	if s.unidentified.After(s.now) {
		// What is delivered there now has not declared everything before it ends.
		s.pending = s.pending || r.delivers.Running(targetKey{s.session.key, t.name})
		return
	}
	input := fmt.Sprintf("delete %d %q, the namespace goes: %t",
		s.gs.Generation, s.gs.Annotations[v1alpha1.ReconcileAtAnnotation], s.namespaceGoes)
	if !s.needsTakeOut(t, input) {
		return
	}
	r.begin(s, t)
	applier, owner, toTakeOut, timeout := t.applier, s.apply, s.toTakeOut(t), s.gs.GetTimeout()
	result, done := r.delivers.Do(t.lane(), targetKey{s.session.key, t.name}, input, func(ctx context.Context) apply.Result {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		result := applier.Delete(ctx, owner, toTakeOut())
		if timedOut(ctx, result) {
			result.Err = fmt.Errorf("deleting took longer than spec.timeout (%s), and is continued; increase spec.timeout to give it more time", timeout)
		}
		return result
	})
	if !done {
		s.pending = true
		return
	}
	t.attempted, t.result = input, result
	r.end(s, t)
	if result.Err == nil && len(result.Problems) == 0 && len(result.Inventory) == 0 {
		r.forgetTarget(s, t)
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
		t.delivered, t.restored = "", 0
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
