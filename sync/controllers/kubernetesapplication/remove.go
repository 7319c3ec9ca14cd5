package kubernetesapplication

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/excerpt"
	"waybill.dev/waybill/sync/reconcile"
)

// remove deletes every resource of the application, and releases the application when none is left,
// which is when nothing of it is left in the cluster. The deletion of each triggers a
// reconciliation.
func (r *Reconciler) remove(ctx context.Context, s *scope, ours map[string]*v1alpha1.KubernetesApplicationResource) (reconcile.Outcome, error) {
	if len(ours) == 0 {
		return r.confirm(ctx, s)
	}
	s.left, s.surplus = ours, firstToGo(slices.Collect(maps.Values(ours)))
	r.keep(ctx, s)
	if s.failed != nil {
		return reconcile.Outcome{}, reconcile.Failed(v1alpha1.DeleteFailedReason, "%w", s.failed)
	}
	return reconcile.Outcome{}, reconcile.Waiting(v1alpha1.DeletingReason, 0, "waiting for what is left: %s", excerpt.Texts(remaining(ours), "; ", shown))
}

// firstToGo returns the resources that must be deleted before the others: objects of kinds that
// others define, or all if there are none. Whatever releases them, such as an operator that comes
// with its kinds, must be there until they are gone.
func firstToGo(all []*v1alpha1.KubernetesApplicationResource) []*v1alpha1.KubernetesApplicationResource {
	defined := map[schema.GroupKind]bool{}
	for _, live := range all {
		if kind, ok := definedKind(live.Spec.Template); ok {
			defined[kind] = true
		}
	}
	var first []*v1alpha1.KubernetesApplicationResource
	for _, live := range all {
		if defined[live.Spec.Template.GroupVersionKind().GroupKind()] {
			first = append(first, live)
		}
	}
	if len(first) == 0 {
		return all
	}
	return first
}

// confirm checks past the cache whether a resource is left: one that was created a moment ago must
// not be left behind.
func (r *Reconciler) confirm(ctx context.Context, s *scope) (reconcile.Outcome, error) {
	left := &v1alpha1.KubernetesApplicationResourceList{}
	err := r.Direct.List(ctx, left, client.InNamespace(s.app.Namespace), client.MatchingLabels{v1alpha1.KubernetesApplicationLabel: s.app.Name})
	if err != nil {
		return reconcile.Outcome{}, fmt.Errorf("list resources: %w", err)
	}
	if slices.ContainsFunc(left.Items, func(live v1alpha1.KubernetesApplicationResource) bool { return s.owns(&live) }) {
		return reconcile.Outcome{Pending: true, RequeueAfter: retryConflict}, nil
	}
	return reconcile.Outcome{Released: true}, nil
}

// remaining describes what each resource waits for, sorted by name.
func remaining(ours map[string]*v1alpha1.KubernetesApplicationResource) []string {
	texts := make([]string, 0, len(ours))
	for _, name := range slices.Sorted(maps.Keys(ours)) {
		live := ours[name]
		ready := conditions.Get(live, v1alpha1.ReadyCondition)
		if live.DeletionTimestamp.IsZero() || ready == nil || ready.Status != metav1.ConditionFalse {
			texts = append(texts, "resource "+name)
			continue
		}
		texts = append(texts, describe(name, ready.Message))
	}
	return texts
}
