// Package scale brings workloads to rest and starts them again, by their scale subresource.
package scale

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/data/snapshot/contents"
)

// Workloads returns the workloads of an application that can be scaled, with the replicas that they
// are to have: those that are scaled to zero already are left out. They are its Deployments and
// StatefulSets.
func Workloads(c *contents.Contents) []v1alpha1.ScaledWorkload {
	var found []v1alpha1.ScaledWorkload
	for _, o := range c.Objects {
		kind := o.GroupVersionKind()
		if kind.Group != appsv1.GroupName || (kind.Kind != "Deployment" && kind.Kind != "StatefulSet") {
			continue
		}
		replicas, set, err := unstructured.NestedInt64(o.Object, "spec", "replicas")
		switch {
		case err != nil: // of no object that an API server has stored
			continue
		case !set:
			replicas = 1
		case replicas == 0:
			continue
		}
		found = append(found, v1alpha1.ScaledWorkload{
			ObjectReference: v1alpha1.ObjectReference{Group: kind.Group, Kind: kind.Kind, Namespace: o.GetNamespace(), Name: o.GetName()},
			Replicas:        int32(replicas), //nolint:gosec // the API server has an int32
		})
	}
	return found
}

// Down scales a workload to zero. It is no error if it is gone.
func Down(ctx context.Context, c client.Client, w v1alpha1.ScaledWorkload) error {
	return set(ctx, c, w, 0, func(now int32) bool { return now != 0 })
}

// Up gives a workload its replicas back, unless it has been given others meanwhile. It is no error if
// it is gone.
func Up(ctx context.Context, c client.Client, w v1alpha1.ScaledWorkload) error {
	return set(ctx, c, w, w.Replicas, func(now int32) bool { return now == 0 })
}

// Replicas returns how many replicas a workload is to have now; zero if it is gone.
func Replicas(ctx context.Context, c client.Client, w v1alpha1.ScaledWorkload) (int32, error) {
	_, scale, err := read(ctx, c, w)
	return scale.Spec.Replicas, client.IgnoreNotFound(err)
}

// set writes the replicas of a workload if those that it is to have now are to be changed. What was
// changed between reading and writing is a conflict, which is worth another try.
func set(ctx context.Context, c client.Client, w v1alpha1.ScaledWorkload, replicas int32, change func(now int32) bool) error {
	obj, scale, err := read(ctx, c, w)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil || !change(scale.Spec.Replicas) {
		return err
	}
	scale.Spec.Replicas = replicas
	err = c.SubResource("scale").Update(ctx, obj, client.WithSubResourceBody(scale), client.FieldOwner(v1alpha1.FieldManager))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("scale %s %s/%s to %d: %w", w.Kind, w.Namespace, w.Name, replicas, err)
	}
	return nil
}

// read returns a workload, of which only the name is known, and its scale.
func read(ctx context.Context, c client.Client, w v1alpha1.ScaledWorkload) (client.Object, *autoscalingv1.Scale, error) {
	var obj client.Object
	scale := &autoscalingv1.Scale{}
	switch w.Kind {
	case "Deployment":
		obj = &appsv1.Deployment{}
	case "StatefulSet":
		obj = &appsv1.StatefulSet{}
	default:
		return nil, scale, fmt.Errorf("%s %s/%s cannot be scaled", w.Kind, w.Namespace, w.Name)
	}
	obj.SetNamespace(w.Namespace)
	obj.SetName(w.Name)
	if err := c.SubResource("scale").Get(ctx, obj, scale); err != nil {
		return nil, scale, fmt.Errorf("get scale of %s %s/%s: %w", w.Kind, w.Namespace, w.Name, err)
	}
	return obj, scale, nil
}
