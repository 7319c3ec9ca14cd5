package kubernetesapplicationresource

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fluxcd/pkg/runtime/conditions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/reconcile"
)

// lookUpCluster sets the KubernetesCluster, and reports whether this process serves it. Every
// process serves one that does not exist.
func (r *Reconciler) lookUpCluster(ctx context.Context, s *scope) (bool, error) {
	if s.kar.Spec.ClusterName == "" {
		return true, nil
	}
	kc := &v1alpha1.KubernetesCluster{}
	err := r.Client.Get(ctx, s.clusterKey(), kc)
	switch {
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("get cluster %s: %w", s.kar.Spec.ClusterName, err)
	}
	s.kc = kc
	return r.ClusterSelector == nil || r.ClusterSelector.Matches(labels.Set(kc.Labels)), nil
}

func (s *scope) clusterKey() types.NamespacedName {
	return types.NamespacedName{Namespace: s.kar.Namespace, Name: s.kar.Spec.ClusterName}
}

// place finds the cluster that the resource goes to.
func (r *Reconciler) place(_ context.Context, s *scope) error {
	switch {
	case s.kar.Spec.ClusterName == "":
		return reconcile.Waiting(v1alpha1.NotScheduledReason, 0, "not scheduled to a cluster yet; its application says why")
	case s.kc == nil:
		return s.lose(reconcile.Waiting(v1alpha1.ClusterNotFoundReason, 0,
			"KubernetesCluster %s does not exist: create it again, or delete and recreate the application to have it scheduled elsewhere", s.clusterKey()))
	case s.kc.IsSeed():
		return s.lose(reconcile.Stalled(v1alpha1.InvalidSpecReason,
			"KubernetesCluster %s is a seed: delete the application, and create it in the seed", s.clusterKey()))
	case s.kc.Spec.Paused:
		s.outcome = &reconcile.Outcome{
			Unknown: v1alpha1.SuspendedReason,
			Message: fmt.Sprintf("KubernetesCluster %s is paused: what runs there stays as it is", s.kc.Name),
		}
		_ = s.lose(errors.New(s.outcome.Message))
		return nil
	}
	return r.engage(s)
}

// lose passes to the delivery why its cluster cannot be used, and returns that.
func (s *scope) lose(why error) error {
	s.session.delivery.Lose(why)
	return why
}

// engage has the delivery use the cluster, and take in what has happened there. Until a cluster has been
// contacted since the start of the process, there is nothing to report, unless its KubernetesCluster has
// the condition Ready False.
func (r *Reconciler) engage(s *scope) error {
	found, err := r.Clusters.Get(s.clusterKey())
	if err != nil {
		s.session.delivery.Lose(err)
		if state, _ := r.Clusters.State(s.clusterKey()); state.Contacted {
			return reconcile.Waiting(v1alpha1.ClusterUnreachableReason, 0, "%w", err)
		}
		if ready := conditions.Get(s.kc, v1alpha1.ReadyCondition); ready != nil && ready.Status == metav1.ConditionFalse {
			return reconcile.Waiting(v1alpha1.ClusterUnreachableReason, 0, "cluster %s cannot be used: %s", s.clusterKey(), ready.Message)
		}
		s.outcome = &reconcile.Outcome{Pending: true}
		return nil
	}
	s.session.delivery.Use(found, found)
	s.state = s.session.delivery.Look()
	if namespace, placed := s.placedBy(s.state.Result); placed {
		s.session.placed, s.session.namespace = true, namespace
	}
	return nil
}

// placedBy reports whether a job has applied the object, and in which namespace.
func (s *scope) placedBy(got apply.Result) (namespace string, placed bool) {
	troubled := func(p manifest.Problem) bool { return s.sameObject(p.ID) }
	if got.Err != nil || slices.ContainsFunc(got.Problems, troubled) || slices.ContainsFunc(got.Waiting, s.sameObject) {
		return "", false
	}
	if i := slices.IndexFunc(got.Inventory, s.sameObject); i >= 0 {
		return got.Inventory[i].Namespace, true
	}
	return "", false
}
