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

// scheduled returns, sorted, the KubernetesApplications in the namespace that are scheduled to the
// cluster, and the resources there that no existing KubernetesApplication controls.
func (r *Reconciler) scheduled(ctx context.Context, s *scope) ([]string, error) {
	found := map[string]bool{}
	add := func(kind, name string) {
		found[fmt.Sprintf("%s %s/%s (of the hub)", kind, s.kc.Namespace, name)] = true
	}
	apps := &v1alpha1.KubernetesApplicationList{}
	if err := r.Client.List(ctx, apps, client.InNamespace(s.kc.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list KubernetesApplications: %w", err)
	}
	exist := map[types.UID]bool{}
	for i := range apps.Items {
		exist[apps.Items[i].UID] = true
		if apps.Items[i].Spec.ClusterName == s.kc.Name {
			add(v1alpha1.KubernetesApplicationKind, apps.Items[i].Name)
		}
	}
	resources := &v1alpha1.KubernetesApplicationResourceList{}
	if err := r.Client.List(ctx, resources, client.InNamespace(s.kc.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list KubernetesApplicationResources: %w", err)
	}
	for i := range resources.Items {
		resource := &resources.Items[i]
		if resource.Spec.ClusterName != s.kc.Name {
			continue
		}
		if controller := metav1.GetControllerOf(resource); controller != nil && exist[controller.UID] {
			add(controller.Kind, controller.Name)
		} else {
			add(v1alpha1.KubernetesApplicationResourceKind, resource.Name)
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
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

// gone lets only deletions through.
func gone() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		UpdateFunc:  func(event.UpdateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}
