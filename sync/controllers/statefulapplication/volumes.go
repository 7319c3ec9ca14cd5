package statefulapplication

import (
	"context"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/data/restore"
	kernel "waybill.dev/waybill/sync/reconcile"
)

// volume is a snapshot of a volume.
type volume struct {
	snapshot *snapshotv1.VolumeSnapshot
	content  *snapshotv1.VolumeSnapshotContent
}

// findVolumes finds the VolumeSnapshots of the claims, and checks that volumes can be made of them.
func (w *work) findVolumes(ctx context.Context) error {
	w.volumes = map[string]*volume{}
	for _, claim := range w.plan.Claims {
		ref, ok := w.content.Spec.VolumeSnapshotRefs[claim.Source]
		if !ok {
			continue // the snapshot was taken without it
		}
		found, err := w.findVolume(ctx, ref)
		if err != nil {
			return err
		}
		if err := w.fits(claim, found); err != nil {
			return err
		}
		w.volumes[claim.Source] = found
	}
	return nil
}

func (w *work) findVolume(ctx context.Context, ref v1alpha1.NamespacedReference) (*volume, error) {
	v := &volume{snapshot: &snapshotv1.VolumeSnapshot{}, content: &snapshotv1.VolumeSnapshotContent{}}
	name := ref.Namespace + "/" + ref.Name
	if err := w.read(ctx, "VolumeSnapshot", types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, v.snapshot); err != nil {
		return nil, err
	}
	status := v.snapshot.Status
	switch {
	case ref.UID != "" && ref.UID != string(v.snapshot.UID):
		return nil, missing("VolumeSnapshot %s was deleted and created again", name)
	case status == nil || !ptr.Deref(status.ReadyToUse, false) || status.BoundVolumeSnapshotContentName == nil:
		return nil, missing("VolumeSnapshot %s is not ready to use", name)
	}
	bound := *status.BoundVolumeSnapshotContentName
	if err := w.read(ctx, "VolumeSnapshotContent", types.NamespacedName{Name: bound}, v.content); err != nil {
		return nil, err
	}
	if v.content.Spec.VolumeSnapshotRef.UID != v.snapshot.UID || v.content.Status == nil || v.content.Status.SnapshotHandle == nil {
		return nil, missing("VolumeSnapshotContent %s is not bound to VolumeSnapshot %s", bound, name)
	}
	return v, nil
}

func missing(format string, args ...any) error {
	return kernel.Failed(v1alpha1.VolumeSnapshotMissingReason, format, args...)
}

// read reads an object of the group snapshot.storage.k8s.io, which a cluster may not serve.
func (w *work) read(ctx context.Context, kind string, key types.NamespacedName, into any) error {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(snapshotv1.SchemeGroupVersion.WithKind(kind))
	err := w.Reader.Get(ctx, key, obj)
	switch {
	case meta.IsNoMatchError(err):
		return missing("the cluster does not serve %ss: install the CRDs and the controller of CSI snapshots", kind)
	case apierrors.IsNotFound(err):
		return missing("%s %s does not exist", kind, key)
	case err != nil:
		return fmt.Errorf("get %s %s: %w", kind, key, err)
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, into)
}

// fits returns an error if the driver of a snapshot is not that of the claim's StorageClass.
func (w *work) fits(claim restore.Claim, v *volume) error {
	name, _, _ := unstructured.NestedString(claim.Object, "spec", "storageClassName")
	class := w.classes[name]
	if class == nil || class.Provisioner == v.content.Spec.Driver {
		return nil
	}
	return kernel.Failed(v1alpha1.StorageClassNotFoundReason,
		"PersistentVolumeClaim %s: StorageClass %q is of driver %s, which cannot read snapshots of driver %s: map StorageClass to another in the StatefulApplicationClass",
		claim.GetName(), name, class.Provisioner, v.content.Spec.Driver)
}

// fill has a claim get its content from a VolumeSnapshot of its namespace, and makes it large enough.
func (v *volume) fill(claim *unstructured.Unstructured, snapshot string) error {
	source := map[string]any{"apiGroup": snapshotv1.GroupName, "kind": "VolumeSnapshot", "name": snapshot}
	if err := unstructured.SetNestedMap(claim.Object, source, "spec", "dataSource"); err != nil {
		return fmt.Errorf("PersistentVolumeClaim %s: %w", claim.GetName(), err)
	}
	size := v.snapshot.Status.RestoreSize
	if size == nil {
		return nil
	}
	path := []string{"spec", "resources", "requests", string(corev1.ResourceStorage)}
	text, _, _ := unstructured.NestedString(claim.Object, path...)
	if wanted, err := resource.ParseQuantity(text); err == nil && wanted.Cmp(*size) >= 0 {
		return nil
	}
	return unstructured.SetNestedField(claim.Object, size.String(), path...)
}
