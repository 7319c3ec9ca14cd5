package volumes

import (
	"context"
	"errors"
	"fmt"

	groupsnapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/data/snapshot/contents"
	"waybill.dev/waybill/sync/excerpt"
	"waybill.dev/waybill/sync/reconcile"
)

// defaultClass marks the VolumeSnapshotClass of a driver that is used where none is named.
const defaultClass = "snapshot.storage.kubernetes.io/is-default-class"

// mostNames is how many names a message lists.
const mostNames = 5

// Choose returns how the claims are snapshotted, in their order: the class and the name of each
// snapshot. It fails if no snapshot can be taken of one of them; what a person has to change is a stalled
// error.
func (v *Volumes) Choose(ctx context.Context, o Owner, class *v1alpha1.ApplicationSnapshotClass, claims []contents.Claim) ([]v1alpha1.SnapshotVolume, error) {
	if len(claims) == 0 {
		return nil, nil
	}
	known := &snapshotv1.VolumeSnapshotClassList{}
	if err := v.Client.List(ctx, known); err != nil {
		return nil, unserved(err, "list VolumeSnapshotClasses")
	}
	var chosen []v1alpha1.SnapshotVolume
	for i := range claims {
		claim := &claims[i]
		if claim.Volume == "" {
			return nil, unsupported("PersistentVolumeClaim %q is not bound", claim.GetName())
		}
		if claim.Driver == "" {
			return nil, unsupported("PersistentVolumeClaim %q has a volume without a CSI driver, which has no snapshots; "+
				"leave it out by spec.persistentVolumeClaimFilter", claim.GetName())
		}
		volume := v1alpha1.SnapshotVolume{Claim: claim.GetName()}
		var err error
		if group := class.VolumeGroupSnapshotClassNames[claim.Driver]; group != "" {
			volume.ClassName, volume.VolumeGroupSnapshot = group, o.name("group/"+claim.Driver)
			err = v.checkGroup(ctx, group, claim.Driver)
		} else {
			volume.VolumeSnapshot = o.name(claim.GetName())
			volume.ClassName, err = classOf(class, claim, known.Items)
		}
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, volume)
	}
	return chosen, nil
}

// classOf returns the name of the VolumeSnapshotClass of a claim.
func classOf(class *v1alpha1.ApplicationSnapshotClass, claim *contents.Claim, known []snapshotv1.VolumeSnapshotClass) (string, error) {
	named := class.VolumeSnapshotClassNames[claim.StorageClass]
	var defaults []string
	for i := range known {
		c := &known[i]
		switch {
		case named != "" && c.Name == named && c.Driver != claim.Driver:
			return "", unsupported("VolumeSnapshotClass %q is of driver %q, but the volume of PersistentVolumeClaim %q is of %q: correct volumeSnapshotClassNames of ApplicationSnapshotClass %q",
				named, c.Driver, claim.GetName(), claim.Driver, class.Name)
		case named != "" && c.Name == named:
			return named, nil
		case named == "" && c.Driver == claim.Driver && c.Annotations[defaultClass] == "true":
			defaults = append(defaults, c.Name)
		}
	}
	switch {
	case named != "":
		return "", unsupported("VolumeSnapshotClass %q, which ApplicationSnapshotClass %q names for StorageClass %q, does not exist", named, class.Name, claim.StorageClass)
	case len(defaults) == 0:
		return "", unsupported("driver %q of PersistentVolumeClaim %q has no default VolumeSnapshotClass: name one for StorageClass %q in volumeSnapshotClassNames of ApplicationSnapshotClass %q",
			claim.Driver, claim.GetName(), claim.StorageClass, class.Name)
	case len(defaults) > 1:
		return "", unsupported("driver %q of PersistentVolumeClaim %q has several default VolumeSnapshotClasses (%s): name one for StorageClass %q in volumeSnapshotClassNames of ApplicationSnapshotClass %q",
			claim.Driver, claim.GetName(), excerpt.Names(defaults, mostNames), claim.StorageClass, class.Name)
	}
	return defaults[0], nil
}

func (v *Volumes) checkGroup(ctx context.Context, name, driver string) error {
	class := &groupsnapshotv1.VolumeGroupSnapshotClass{}
	err := v.Client.Get(ctx, client.ObjectKey{Name: name}, class)
	switch {
	case meta.IsNoMatchError(err):
		return unserved(err, "")
	case apierrors.IsNotFound(err):
		return unsupported("VolumeGroupSnapshotClass %q does not exist", name)
	case err != nil:
		return fmt.Errorf("get VolumeGroupSnapshotClass %q: %w", name, err)
	case class.Driver != driver:
		return unsupported("VolumeGroupSnapshotClass %q is of driver %q, not of %q", name, class.Driver, driver)
	}
	return nil
}

// unserved says of a kind of snapshots that the API server does not know it.
func unserved(err error, doing string) error {
	if !meta.IsNoMatchError(err) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	what := "VolumeSnapshots"
	if unknown := (&meta.NoKindMatchError{}); errors.As(err, &unknown) && unknown.GroupKind.Group == groupsnapshotv1.GroupName {
		what = "VolumeGroupSnapshots"
	}
	return unsupported("the API server has no %s: install the CustomResourceDefinitions and the snapshot-controller of kubernetes-csi/external-snapshotter", what)
}

func unsupported(format string, args ...any) error {
	return reconcile.Stalled(v1alpha1.VolumeNotSupportedReason, format, args...)
}
