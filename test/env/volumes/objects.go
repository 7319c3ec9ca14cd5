package volumes

import (
	"context"
	"fmt"
	"slices"
	"time"

	groupsnapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	snapshots "github.com/kubernetes-csi/external-snapshotter/client/v8/clientset/versioned"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/test/env/csidriver"
)

// The classes of the driver.
const (
	// ImmediateClass is a StorageClass whose claims are bound at once.
	ImmediateClass = "files"
	// FirstConsumerClass is a StorageClass whose claims are bound when a Pod uses them.
	FirstConsumerClass = "files-first-consumer"
	// SnapshotClass is the default VolumeSnapshotClass.
	SnapshotClass = "files"
	// GroupSnapshotClass is the default VolumeGroupSnapshotClass.
	GroupSnapshotClass = "files"
)

// createObjects creates what an installed driver consists of in the API, besides its Pods.
func (v *Volumes) createObjects(ctx context.Context, node string) error {
	if err := v.registerDriver(ctx, node); err != nil {
		return err
	}
	for name, mode := range map[string]storagev1.VolumeBindingMode{
		ImmediateClass:     storagev1.VolumeBindingImmediate,
		FirstConsumerClass: storagev1.VolumeBindingWaitForFirstConsumer,
	} {
		_, err := v.client.StorageV1().StorageClasses().Create(ctx, &storagev1.StorageClass{
			ObjectMeta:           metav1.ObjectMeta{Name: name},
			Provisioner:          csidriver.Name,
			VolumeBindingMode:    ptr.To(mode),
			ReclaimPolicy:        ptr.To(corev1.PersistentVolumeReclaimDelete),
			AllowVolumeExpansion: ptr.To(true),
		}, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("create StorageClass %s: %w", name, err)
		}
	}
	return v.createSnapshotClasses(ctx)
}

func (v *Volumes) createSnapshotClasses(ctx context.Context) error {
	client, err := snapshots.NewForConfig(v.cluster.RESTConfig())
	if err != nil {
		return fmt.Errorf("build client of snapshots: %w", err)
	}
	_, err = client.SnapshotV1().VolumeSnapshotClasses().Create(ctx, &snapshotv1.VolumeSnapshotClass{
		ObjectMeta: metav1.ObjectMeta{
			Name:        SnapshotClass,
			Annotations: map[string]string{"snapshot.storage.kubernetes.io/is-default-class": "true"},
		},
		Driver:         csidriver.Name,
		DeletionPolicy: snapshotv1.VolumeSnapshotContentDelete,
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create VolumeSnapshotClass: %w", err)
	}
	_, err = client.GroupsnapshotV1().VolumeGroupSnapshotClasses().Create(ctx, &groupsnapshotv1.VolumeGroupSnapshotClass{
		ObjectMeta: metav1.ObjectMeta{
			Name:        GroupSnapshotClass,
			Annotations: map[string]string{"groupsnapshot.storage.kubernetes.io/is-default-class": "true"},
		},
		Driver:         csidriver.Name,
		DeletionPolicy: snapshotv1.VolumeSnapshotContentDelete,
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create VolumeGroupSnapshotClass: %w", err)
	}
	return nil
}

// registerDriver does what an installed driver brings, and for a fake Node also what its kubelet would do.
func (v *Volumes) registerDriver(ctx context.Context, node string) error {
	_, err := v.client.StorageV1().CSIDrivers().Create(ctx, &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: csidriver.Name},
		Spec:       storagev1.CSIDriverSpec{AttachRequired: ptr.To(false), FSGroupPolicy: ptr.To(storagev1.FileFSGroupPolicy)},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create CSIDriver: %w", err)
	}
	if v.node != nil {
		return v.awaitRegistration(ctx, node)
	}
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, csidriver.TopologyKey, node)
	labelled, err := v.client.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("label Node: %w", err)
	}
	csiNode := &storagev1.CSINode{
		ObjectMeta: metav1.ObjectMeta{Name: node, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "Node", Name: node, UID: labelled.UID},
		}},
		Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
			{Name: csidriver.Name, NodeID: node, TopologyKeys: []string{csidriver.TopologyKey}},
		}},
	}
	if _, err := v.client.StorageV1().CSINodes().Create(ctx, csiNode, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create CSINode: %w", err)
	}
	return nil
}

// awaitRegistration waits until the kubelet of a real Node has found the driver.
func (v *Volumes) awaitRegistration(ctx context.Context, node string) error {
	err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		csiNode, err := v.client.StorageV1().CSINodes().Get(ctx, node, metav1.GetOptions{})
		return err == nil && slices.ContainsFunc(csiNode.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == csidriver.Name }), nil
	})
	if err != nil {
		return fmt.Errorf("wait for the kubelet to register %s: %w", csidriver.Name, err)
	}
	return nil
}
