package kubernetesapplicationresource

import (
	"context"
	"fmt"

	"github.com/fluxcd/pkg/runtime/conditions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/apply"
	"waybill.dev/waybill/sync/cluster"
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

// place finds the cluster that the resource goes to, and its applier. If the cluster was engaged
// again, or failed when it was used last, its contents are looked at again.
func (r *Reconciler) place(_ context.Context, s *scope) error {
	switch {
	case s.kar.Spec.ClusterName == "":
		return reconcile.Waiting(v1alpha1.NotScheduledReason, 0, "not scheduled to a cluster yet; its application says why")
	case s.kc == nil:
		s.session.cluster = nil
		return reconcile.Waiting(v1alpha1.ClusterNotFoundReason, 0,
			"KubernetesCluster %s does not exist: create it again, or delete and recreate the application to have it scheduled elsewhere", s.clusterKey())
	case s.kc.IsSeed():
		s.session.cluster = nil
		return reconcile.Stalled(v1alpha1.InvalidSpecReason,
			"KubernetesCluster %s is a seed: delete the application, and create it in the seed", s.clusterKey())
	case s.kc.Spec.Paused:
		s.session.cluster = nil
		s.outcome = &reconcile.Outcome{
			Unknown: v1alpha1.SuspendedReason,
			Message: fmt.Sprintf("KubernetesCluster %s is paused: what runs there stays as it is", s.kc.Name),
		}
		return nil
	}
	return r.engage(s)
}

// engage sets the cluster and the applier of the session. Until a cluster has been contacted since
// the start of the process, there is nothing to report, unless its KubernetesCluster has the
// condition Ready False.
func (r *Reconciler) engage(s *scope) error {
	found, err := r.Clusters.Get(s.clusterKey())
	if err != nil {
		s.session.cluster = nil
		if state, _ := r.Clusters.State(s.clusterKey()); state.Contacted {
			return reconcile.Waiting(v1alpha1.ClusterUnreachableReason, 0, "%w", err)
		}
		if ready := conditions.Get(s.kc, v1alpha1.ReadyCondition); ready != nil && ready.Status == metav1.ConditionFalse {
			return reconcile.Waiting(v1alpha1.ClusterUnreachableReason, 0, "cluster %s cannot be used: %s", s.clusterKey(), ready.Message)
		}
		s.outcome = &reconcile.Outcome{Pending: true}
		return nil
	}
	if s.session.cluster == found {
		return nil
	}
	applier := r.applier(found)
	if s.session.applier != applier {
		r.jobs.Drop(s.session.key) // its result is of an earlier engagement, or of another cluster
		s.session.working = false
	}
	if s.session.applier != applier || s.session.result.err != nil {
		s.session.attempted = ""
	}
	s.session.cluster, s.session.applier = found, applier
	return nil
}

// applier returns the one applier of a cluster.
func (r *Reconciler) applier(c *cluster.Cluster) *apply.Applier {
	return r.appliers.Of(c.Context(), c, func() *apply.Applier {
		return apply.New(c.Context(), c, apply.Options{Notify: r.notify, Status: r.isOurs, NotifyStatus: r.notifyStatus})
	})
}
