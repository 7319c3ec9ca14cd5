package kubernetescluster

import (
	"context"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"waybill.dev/waybill/api/v1alpha1"
)

// addScheduled adds the KubernetesApplications in the namespace that are scheduled to the cluster, and
// the resources there that no existing KubernetesApplication controls.
func (r *Reconciler) addScheduled(ctx context.Context, s *scope, l *leftovers) error {
	going := map[string]bool{}
	add := func(kind string, o client.Object) {
		going[fmt.Sprintf("%s %s/%s (of the hub)", kind, s.kc.Namespace, o.GetName())] = !o.GetDeletionTimestamp().IsZero()
	}
	apps := &v1alpha1.KubernetesApplicationList{}
	if err := r.Client.List(ctx, apps, client.InNamespace(s.kc.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list KubernetesApplications: %w", err)
	}
	exist := map[types.UID]*v1alpha1.KubernetesApplication{}
	for i := range apps.Items {
		exist[apps.Items[i].UID] = &apps.Items[i]
		if apps.Items[i].Spec.ClusterName == s.kc.Name {
			add(v1alpha1.KubernetesApplicationKind, &apps.Items[i])
		}
	}
	resources := &v1alpha1.KubernetesApplicationResourceList{}
	if err := r.Client.List(ctx, resources, client.InNamespace(s.kc.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list KubernetesApplicationResources: %w", err)
	}
	for i := range resources.Items {
		resource := &resources.Items[i]
		if resource.Spec.ClusterName != s.kc.Name {
			continue
		}
		if controller := metav1.GetControllerOf(resource); controller != nil && exist[controller.UID] != nil {
			add(v1alpha1.KubernetesApplicationKind, exist[controller.UID])
		} else {
			add(v1alpha1.KubernetesApplicationResourceKind, resource)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(going)) {
		if going[name] {
			l.going = append(l.going, name)
		} else {
			l.toDelete = append(l.toDelete, name)
		}
	}
	return nil
}

// left returns the KubernetesCluster whose deletion an application, or a resource of one, may have
// blocked until it was deleted.
func (r *Reconciler) left(ctx context.Context, o client.Object) []ctrl.Request {
	var name string
	switch o := o.(type) {
	case *v1alpha1.KubernetesApplication:
		name = o.Spec.ClusterName
	case *v1alpha1.KubernetesApplicationResource:
		name = o.Spec.ClusterName
	}
	key, kc := types.NamespacedName{Namespace: o.GetNamespace(), Name: name}, &v1alpha1.KubernetesCluster{}
	if name == "" || r.Client.Get(ctx, key, kc) != nil || kc.DeletionTimestamp.IsZero() {
		return nil
	}
	return []ctrl.Request{{NamespacedName: key}}
}

// gone lets only deletions through, and their beginnings.
func gone() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetDeletionTimestamp().IsZero() && !e.ObjectNew.GetDeletionTimestamp().IsZero()
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}
