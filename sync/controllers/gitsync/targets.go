package gitsync

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/reconcile"
)

// restore reads back, once after a start, what was delivered and where.
func (r *Reconciler) restore(ctx context.Context, s *scope) error {
	if s.session.targets != nil {
		return nil
	}
	delivered, err := r.inventories.Load(ctx, r.Client, s.gs, recorded(s.gs))
	if err != nil {
		return reconcile.Failed(v1alpha1.InventoryUnreadableReason, "%w", err)
	}
	s.session.record.inventory = delivered
	s.session.targets = map[string]*target{}
	for _, c := range s.gs.Status.Clusters {
		was := achieved{revision: c.Revision, applied: c.AppliedDigest}
		if c.Ready {
			was.restored = s.gs.Status.ObservedGeneration
		}
		s.session.targets[c.Name] = r.newTarget(s, c.Name, was)
	}
	if len(s.gs.Status.Clusters) == 0 && len(delivered) > 0 {
		was := achieved{revision: s.gs.Status.Revision, applied: s.gs.Status.AppliedDigest}
		s.session.targets[""] = r.newTarget(s, "", was)
	}
	return nil
}

// selectTargets updates the targets to the clusters that the selector matches. Targets that it no
// longer matches are leaving, and stay until none of our objects is left in them.
func (r *Reconciler) selectTargets(ctx context.Context, s *scope) error {
	selected, err := r.selected(ctx, s.gs)
	if err != nil {
		return err
	}
	for name, kc := range selected {
		t := s.session.targets[name]
		if t == nil {
			t = r.newTarget(s, name, achieved{})
			s.session.targets[name] = t
		}
		if t.leaving {
			t.leaving = false
			t.achieved.outdated()
		}
		t.identify(kc)
		r.engage(s, t, kc)
		s.expectIdentity(t, kc)
	}
	for name, t := range s.session.targets {
		if _, ok := selected[name]; ok {
			continue
		}
		if err := r.leave(ctx, s, t); err != nil {
			return err
		}
	}
	return nil
}

// selected returns the clusters to deliver to, by name; nil for the GitSync's own cluster.
func (r *Reconciler) selected(ctx context.Context, gs *v1alpha1.GitSync) (map[string]*v1alpha1.KubernetesCluster, error) {
	if gs.Spec.ClusterSelector == nil {
		return map[string]*v1alpha1.KubernetesCluster{"": nil}, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(gs.Spec.ClusterSelector)
	if err != nil {
		return nil, reconcile.Stalled(v1alpha1.InvalidSpecReason, "spec.clusterSelector: %w", err)
	}
	clusters := &v1alpha1.KubernetesClusterList{}
	if err := r.Client.List(ctx, clusters, client.InNamespace(gs.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("list clusters: %w", err)
	}
	selected := map[string]*v1alpha1.KubernetesCluster{}
	for i := range clusters.Items {
		if kc := &clusters.Items[i]; kc.DeletionTimestamp.IsZero() {
			selected[kc.Name] = kc
		}
	}
	return selected, nil
}

// engage has a target use its cluster, under the identity that the GitSync acts as, and take in what has
// happened there. kc is nil for the GitSync's own cluster, which nothing pauses.
func (r *Reconciler) engage(s *scope, t *target, kc *v1alpha1.KubernetesCluster) {
	if err := r.use(s, t, kc); err != nil && t.delivery.Lose(err) {
		s.session.record.uncollected = true
	}
	t.state = t.delivery.Look()
	if !t.state.News {
		return
	}
	s.delivered, s.session.record.uncollected = true, true
	if t.leaving {
		return
	}
	s.tellChanges(t, t.state.Result.Changes)
	if t.achieved.applied == "" || t.achieved.delivered != t.state.Digest { // no correction is worth a write of the status
		t.achieved.applied = t.delivery.Applier().Digest(r.owner(s.gs))
	}
	if t.achieved.delivered = ""; !t.state.Clean() {
		return
	}
	if t.achieved.delivered = t.state.Digest; t.achieved.delivered == s.session.desired.digest {
		t.achieved.revision = s.session.desired.source.revision.String()
	}
}

// use finds the cluster of a target. It fails if that cannot be delivered to.
func (r *Reconciler) use(s *scope, t *target, kc *v1alpha1.KubernetesCluster) error {
	if kc != nil && kc.Spec.Paused {
		return errPaused
	}
	base, err := r.reach(s.gs, t.name)
	if err != nil {
		return err
	}
	t.is(base.UID())
	view, err := r.view(s.gs, base)
	if err != nil {
		return err
	}
	t.definitions.in(base)
	t.delivery.Use(view, base)
	return nil
}

// reach returns a cluster as Waybill itself sees it.
func (r *Reconciler) reach(gs *v1alpha1.GitSync, name string) (*cluster.Cluster, error) {
	if name == "" {
		return r.Clusters.Local(), nil
	}
	return r.Clusters.Get(types.NamespacedName{Namespace: gs.Namespace, Name: name})
}

// view returns a cluster under the identity that the GitSync acts as.
func (r *Reconciler) view(gs *v1alpha1.GitSync, base *cluster.Cluster) (*cluster.Cluster, error) {
	account := gs.Spec.ServiceAccountName
	if account == "" {
		if gs.Namespace == r.SystemNamespace {
			return base, nil
		}
		account = "default"
	}
	return base.As("system:serviceaccount:" + gs.Namespace + ":" + account)
}

// forgetTarget drops all state of a target. What is delivered is collected again, so that the
// inventory does not keep the objects of the last cluster: without any cluster in the status, they
// would be taken for objects in the GitSync's own (restore).
func (r *Reconciler) forgetTarget(s *scope, t *target) {
	s.session.record.uncollected = true
	t.definitions.leave()
	t.delivery.Forget()
	delete(s.session.targets, t.name)
}
