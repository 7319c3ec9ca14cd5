package applicationinstallation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/hold"
	"waybill.dev/waybill/sync/reconcile"
)

// +kubebuilder:rbac:groups=apps.waybill.dev,resources=applicationrollbacks,verbs=get;list;watch;create;delete

// keptRollbacks is how many ApplicationRollbacks of failed upgrades are kept of an installation.
const keptRollbacks = 3

var rollbackResource = v1alpha1.GroupVersion.WithResource("applicationrollbacks")

// findRollback returns the ApplicationRollback of a failed upgrade, which it creates unless that was done
// before; nil if it is gone.
func (d *driver) findRollback(ctx context.Context, s *scope, key types.NamespacedName) (*v1alpha1.ApplicationRollback, error) {
	u, found := s.session.undo, &v1alpha1.ApplicationRollback{}
	err := d.readInto(ctx, rollbackResource, key, found)
	switch {
	case apierrors.IsNotFound(err) && u.UID == "" && !u.Ended():
		return d.createRollback(ctx, s, key)
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // as said above
	case err != nil:
		return nil, holdUnknown(err)
	case found.Labels[v1alpha1.UpgradeRollbackLabel] != s.inst.Name || u.UID != "" && found.UID != u.UID:
		return nil, reconcile.Failed(u.Reason, "%s; not rolled back: ApplicationRollback %s is not one that Waybill has made: delete it", u.Message, key)
	}
	return found, nil
}

// createRollback creates the ApplicationRollback of a failed upgrade, and deletes the oldest of earlier ones.
func (d *driver) createRollback(ctx context.Context, s *scope, key types.NamespacedName) (*v1alpha1.ApplicationRollback, error) {
	u := s.session.undo
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v1alpha1.ApplicationRollback{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ApplicationRollbackKind},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name, Labels: map[string]string{v1alpha1.UpgradeRollbackLabel: s.inst.Name},
		},
		Spec: v1alpha1.ApplicationRollbackSpec{
			SnapshotClassName: u.Snapshot.SnapshotClassName, ApplicationName: u.Snapshot.ApplicationName,
			Source: v1alpha1.DataSource{
				Type: v1alpha1.DataSourceSnapshot, SnapshotRef: &v1alpha1.SnapshotReference{Name: u.Snapshot.Name, UID: string(u.Snapshot.UID)},
			},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("encode ApplicationRollback %s: %w", key, err)
	}
	delete(content, "status")
	made, err := d.cluster.Dynamic().Resource(rollbackResource).Namespace(key.Namespace).Create(ctx, &unstructured.Unstructured{Object: content},
		metav1.CreateOptions{FieldManager: v1alpha1.FieldManager})
	if err != nil {
		return nil, reconcile.Failed(u.Reason, "%s; not rolled back: create ApplicationRollback %s: %w", u.Message, key, err)
	}
	if err := d.deleteOldRollbacks(ctx, s, key); err != nil { // no reason not to go back
		ctrl.LoggerFrom(ctx).Error(err, "delete old rollbacks")
	}
	found := &v1alpha1.ApplicationRollback{}
	return found, runtime.DefaultUnstructuredConverter.FromUnstructured(made.Object, found)
}

// deleteOldRollbacks deletes the oldest ApplicationRollbacks of failed upgrades that are more than are kept,
// with the volumes and the snapshots that they keep. All but the newest have ended.
func (d *driver) deleteOldRollbacks(ctx context.Context, s *scope, newest types.NamespacedName) error {
	found, err := d.cluster.Metadata().Resource(rollbackResource).Namespace(newest.Namespace).List(ctx,
		metav1.ListOptions{LabelSelector: v1alpha1.UpgradeRollbackLabel + "=" + s.inst.Name})
	if err != nil {
		return fmt.Errorf("list ApplicationRollbacks: %w", err)
	}
	slices.SortFunc(found.Items, func(a, b metav1.PartialObjectMetadata) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	for _, old := range found.Items[min(len(found.Items), keptRollbacks):] {
		if old.Name == newest.Name {
			continue
		}
		if err := d.deleteRollback(ctx, &old); err != nil {
			return err
		}
	}
	return nil
}

// rollbackEnded returns an error as long as an ApplicationRollback is at work on what is to be uninstalled: it would
// create again what is deleted under it. That of a failed upgrade is deleted if it has not begun.
func (d *driver) rollbackEnded(ctx context.Context, s *scope) error {
	if s.session.leaving.begun {
		return nil
	}
	key, marked := hold.By(s.inst)
	u := s.session.undo
	if u != nil && !u.Ended() {
		key, marked = types.NamespacedName{Namespace: s.current().Namespace, Name: u.Name}, true
	}
	if resource, _ := hold.Resource(key); !marked || resource != rollbackResource {
		return nil
	}
	_, watched := d.holders.seen(ctx, s.key(), key)
	found := &v1alpha1.ApplicationRollback{}
	err := d.readInto(ctx, rollbackResource, key, found)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	case u != nil && found.Name == u.Name && found.Labels[v1alpha1.UpgradeRollbackLabel] == s.inst.Name && notBegun(found):
		err = d.deleteRollback(ctx, found)
	case !hold.UnderWay(found):
		return nil
	}
	if err != nil {
		return err
	}
	after := atWorkInterval
	if watched {
		after = 0
	}
	return reconcile.Waiting(v1alpha1.DeletingReason, after, "waiting for %s to end", hold.Describe(key))
}

// notBegun reports whether a rollback has changed nothing yet.
func notBegun(r *v1alpha1.ApplicationRollback) bool {
	switch r.Status.Phase {
	case "", v1alpha1.RollbackPending, v1alpha1.RollbackSaving:
		return true
	}
	return false
}

func (d *driver) deleteRollback(ctx context.Context, r metav1.Object) error {
	err := d.cluster.Dynamic().Resource(rollbackResource).Namespace(r.GetNamespace()).Delete(ctx, r.GetName(),
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To(r.GetUID())}})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete ApplicationRollback %s/%s: %w", r.GetNamespace(), r.GetName(), err)
	}
	return nil
}
