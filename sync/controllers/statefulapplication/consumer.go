package statefulapplication

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster/watch"
	"waybill.dev/waybill/sync/data/restore"
	"waybill.dev/waybill/sync/data/rollback"
)

// consume has the volumes of claims made that wait for a Pod, and that none of what is restored is going to use for now.
// Where an installation, or another controller than those of Kubernetes, makes the Pods, it is not known which these are.
func (w *work) consume(ctx context.Context, waiting []string) error {
	custom := func(o *object) bool { return !watch.IsBuiltIn(o.GroupVersionKind().Group) }
	if w.plan.Last.GetKind() == v1alpha1.ApplicationInstallationKind || slices.ContainsFunc(w.plan.Objects, custom) {
		return nil
	}
	idle := restore.Idle(waiting, w.plan.Objects)
	for _, claim := range w.plan.Claims {
		if !slices.Contains(idle, claim.GetName()) {
			continue
		}
		if err := w.chooseNode(ctx, claim); err != nil {
			return err
		}
	}
	return nil
}

// chooseNode has the volume of a claim made for the Node of the volume that it was snapshotted of; if that is gone, for any
// that Pods can run on.
func (w *work) chooseNode(ctx context.Context, claim restore.Claim) error {
	volumes := &rollback.Volumes{Client: uncached{w.Client, w.Reader}}
	live := &corev1.PersistentVolumeClaim{}
	err := w.Reader.Get(ctx, types.NamespacedName{Namespace: w.obj.Namespace, Name: claim.GetName()}, live)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	err = volumes.Choose(ctx, live, func(ctx context.Context) (string, error) {
		namespace := w.content.Spec.VolumeSnapshotRefs[claim.Source].Namespace
		volume, err := volumes.Of(ctx, namespace, claim.Source)
		if err != nil {
			return "", err
		}
		return volumes.NodeOf(ctx, namespace, claim.Source, volume)
	})
	if err != nil {
		return fmt.Errorf("have the volume of PersistentVolumeClaim %q made, which no Pod uses: %w", claim.GetName(), err)
	}
	return nil
}

// uncached is a client that reads from the API server.
type uncached struct {
	client.Client

	reader client.Reader
}

func (u uncached) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return u.reader.Get(ctx, key, obj, opts...)
}

func (u uncached) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return u.reader.List(ctx, list, opts...)
}
