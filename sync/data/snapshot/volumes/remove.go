package volumes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	groupsnapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// Unlabel takes the labels off the claims by which VolumeGroupSnapshots select them. Once those are cut,
// or given up, they are not needed.
func (v *Volumes) Unlabel(ctx context.Context, o Owner, volumes []v1alpha1.SnapshotVolume) error {
	for _, volume := range volumes {
		if volume.VolumeGroupSnapshot == "" {
			continue
		}
		if err := v.label(ctx, o.Namespace, volume.Claim, nil); err != nil {
			return err
		}
	}
	return nil
}

// label sets the label of a group on a claim, or removes it.
func (v *Volumes) label(ctx context.Context, namespace, claim string, value *string) error {
	change, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]*string{v1alpha1.SnapshotGroupLabel: value}}})
	if err != nil {
		return err
	}
	obj := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: claim}}
	err = v.Client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, change), client.FieldOwner(v1alpha1.FieldManager))
	if value == nil {
		err = client.IgnoreNotFound(err)
	}
	if err != nil {
		return fmt.Errorf("label PersistentVolumeClaim %q: %w", claim, err)
	}
	return nil
}

// Delete deletes the snapshots that were created for the owner: everything that has its label.
func (v *Volumes) Delete(ctx context.Context, o Owner, volumes []v1alpha1.SnapshotVolume) error {
	err := v.Unlabel(ctx, o, volumes)
	for group := range groups(volumes) {
		err = errors.Join(err, v.deleteGroup(ctx, o.Namespace, group))
	}
	for _, volume := range volumes {
		if volume.VolumeGroupSnapshot == "" {
			err = errors.Join(err, v.delete(ctx, o.Namespace, volume.VolumeSnapshot, ""))
		}
	}
	return err
}

// DeleteRefs deletes the VolumeSnapshots of a content. Those of a group are deleted with it.
func (v *Volumes) DeleteRefs(ctx context.Context, refs map[string]v1alpha1.NamespacedReference) error {
	var failures error
	for _, ref := range refs {
		found, err := v.get(ctx, ref)
		switch {
		case err != nil:
		case found == nil:
			continue
		case groupOf(found) != "":
			err = v.deleteGroup(ctx, ref.Namespace, groupOf(found))
		default:
			err = v.delete(ctx, ref.Namespace, ref.Name, found.UID)
		}
		failures = errors.Join(failures, err)
	}
	return failures
}

// get returns a VolumeSnapshot; nil if it is gone, or another one has its name.
func (v *Volumes) get(ctx context.Context, ref v1alpha1.NamespacedReference) (*snapshotv1.VolumeSnapshot, error) {
	found := &snapshotv1.VolumeSnapshot{}
	err := v.Client.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, found)
	switch {
	case gone(err):
		return nil, nil //nolint:nilnil // as said above
	case err != nil:
		return nil, fmt.Errorf("get VolumeSnapshot %s/%s: %w", ref.Namespace, ref.Name, err)
	case ref.UID != "" && string(found.UID) != ref.UID:
		return nil, nil //nolint:nilnil // as said above
	}
	return found, nil
}

func (v *Volumes) deleteGroup(ctx context.Context, namespace, name string) error {
	err := v.Client.Delete(ctx, &groupsnapshotv1.VolumeGroupSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
	if err != nil && !gone(err) {
		return fmt.Errorf("delete VolumeGroupSnapshot %s/%s: %w", namespace, name, err)
	}
	return nil
}

func (v *Volumes) delete(ctx context.Context, namespace, name string, uid types.UID) error {
	var options []client.DeleteOption
	if uid != "" {
		options = append(options, client.Preconditions{UID: ptr.To(uid)})
	}
	err := v.Client.Delete(ctx, &snapshotv1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}, options...)
	if err != nil && !gone(err) {
		return fmt.Errorf("delete VolumeSnapshot %s/%s: %w", namespace, name, err)
	}
	return nil
}

// gone reports whether an object does not exist, or its kind does not.
func gone(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }

// Retain has the snapshots of the driver outlive their VolumeSnapshots, which go with their namespace. A
// VolumeSnapshotContent that is not bound to the VolumeSnapshot which names it is left as it is.
func (v *Volumes) Retain(ctx context.Context, refs map[string]v1alpha1.NamespacedReference) error {
	for _, ref := range refs {
		found, err := v.get(ctx, ref)
		if err != nil {
			return err
		}
		if found == nil || found.Status == nil || found.Status.BoundVolumeSnapshotContentName == nil {
			continue
		}
		if err := v.retain(ctx, *found.Status.BoundVolumeSnapshotContentName, found); err != nil {
			return err
		}
	}
	return nil
}

// retain sets the deletionPolicy of a VolumeSnapshotContent, if it is bound to a VolumeSnapshot and still as it was read.
func (v *Volumes) retain(ctx context.Context, name string, of *snapshotv1.VolumeSnapshot) error {
	content := &snapshotv1.VolumeSnapshotContent{}
	err := v.Client.Get(ctx, client.ObjectKey{Name: name}, content)
	if gone(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("get VolumeSnapshotContent %q: %w", name, err)
	}
	if content.Spec.VolumeSnapshotRef.UID != of.UID || content.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentRetain {
		return nil
	}
	change := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q},"spec":{"deletionPolicy":"Retain"}}`, content.ResourceVersion)
	if err := v.Client.Patch(ctx, content, client.RawPatch(types.MergePatchType, change)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("set deletionPolicy of VolumeSnapshotContent %q to Retain: %w", name, err)
	}
	return nil
}
