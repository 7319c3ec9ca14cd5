package applicationinstallation

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster/watch"
	"waybill.dev/waybill/sync/reconcile"
)

// +kubebuilder:rbac:groups=apps.waybill.dev,resources=applicationsnapshots,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=statefulapplications;applicationsnapshotclasses,verbs=list
// +kubebuilder:rbac:groups=apps.waybill.dev,resources=applications,verbs=get

const (
	// claimTime is within what a snapshot must have been begun: otherwise no controller takes it.
	claimTime = time.Minute
	// tryTime is how long an upgrade waits for a snapshot that it can do without.
	tryTime = 30 * time.Minute
	// keptSnapshots is how many snapshots from before upgrades are kept of an installation.
	keptSnapshots = 3
)

var (
	snapshotResource = v1alpha1.GroupVersion.WithResource("applicationsnapshots")
	statefulResource = v1alpha1.GroupVersion.WithResource("statefulapplications")
	classResource    = v1alpha1.GroupVersion.WithResource("applicationsnapshotclasses")
	appResource      = v1alpha1.GroupVersion.WithResource("applications")
)

// untaken is why there is no snapshot, and will be none unless a user does something. again says that
// it may be tried again by itself.
type untaken struct {
	why   string
	again bool
}

func (u *untaken) Error() string { return u.why }

func cannot(format string, args ...any) error {
	return &untaken{why: fmt.Sprintf(format, args...), again: true}
}

// takesSnapshots reports whether a snapshot is taken before an upgrade.
func (s *scope) takesSnapshots() bool {
	switch s.inst.GetBeforeUpgrade(s.source.version).Snapshot {
	case v1alpha1.SnapshotRequire, v1alpha1.SnapshotTry:
		return true
	default:
		return false
	}
}

// snapshotFirst returns why the snapshot that is to be taken before an upgrade is not there; nil if it is,
// if there is nothing to take one of, or if it failed and the upgrade goes on without.
func (d *driver) snapshotFirst(ctx context.Context, s *scope) error {
	s.session.snapshotAt = time.Time{}
	if s.session.awaiting.settled == s.session.awaiting.moved {
		return nil
	}
	if !s.takesSnapshots() || s.inst.Status.Application == nil || s.inst.Status.Inventory == nil {
		return nil
	}
	s.session.awaiting.snapshot = nil
	before := s.inst.GetBeforeUpgrade(s.source.version)
	name, err := d.takeSnapshot(ctx, s, before)
	none := &untaken{}
	switch {
	case err == nil && name == "":
		return nil
	case err == nil:
		s.session.awaiting.settled = s.session.awaiting.moved
		s.tell(corev1.EventTypeNormal, v1alpha1.SnapshotTakenReason, fmt.Sprintf("ApplicationSnapshot %s/%s was taken before the upgrade to %s", s.current().Namespace, name, s.resolved.Version))
		return nil
	case !errors.As(err, &none):
		return err
	case before.Snapshot == v1alpha1.SnapshotTry:
		s.session.awaiting.settled = s.session.awaiting.moved
		s.tell(corev1.EventTypeWarning, v1alpha1.SnapshotNotTakenReason, fmt.Sprintf("upgraded to %s without a snapshot: %s", s.resolved.Version, none.why))
		return nil
	case none.again:
		return reconcile.Failed(v1alpha1.SnapshotNotTakenReason, "not upgraded to %s: %w", s.resolved.Version, err)
	default:
		return reconcile.Stalled(v1alpha1.SnapshotNotTakenReason, "not upgraded to %s: %w; put that right and ask for another try with annotation %s",
			s.resolved.Version, err, v1alpha1.ReconcileAtAnnotation)
	}
}

func (s *scope) tell(kind, reason, note string) {
	s.pass.Tell(reconcile.Event{Type: kind, Reason: reason, Action: "Snapshot", Note: note})
}

// takeSnapshot returns the name of the ApplicationSnapshot of what is installed, once it is ready; none if
// there is no Application to take one of. An error of type untaken says why there will be none.
func (d *driver) takeSnapshot(ctx context.Context, s *scope, before v1alpha1.BeforeUpgrade) (string, error) {
	kind := v1alpha1.GroupVersion.WithKind(v1alpha1.ApplicationSnapshotKind)
	if _, err := watch.Mapping(ctx, d.cluster.Mapper(), kind.GroupKind(), kind.Version); meta.IsNoMatchError(err) {
		return "", cannot("the cluster has no kind ApplicationSnapshot: install the CRDs of Waybill, and run waybill-sync with role data there")
	} else if err != nil {
		return "", fmt.Errorf("look for kind ApplicationSnapshot: %w", err)
	}
	key := types.NamespacedName{Namespace: s.current().Namespace, Name: s.snapshotName()}
	d.waits.set(s.key(), append(s.awaits(), awaited{snapshot: key})...)
	known, err := d.snapshots.watch()
	if err != nil {
		return "", err
	}
	name, err := d.findSnapshot(ctx, s, before, key)
	if at := s.now.Add(atWorkInterval); !known && (s.session.snapshotAt.IsZero() || at.Before(s.session.snapshotAt)) {
		s.session.snapshotAt = at
	}
	return name, err
}

// findSnapshot is takeSnapshot in a cluster that has the kind.
func (d *driver) findSnapshot(ctx context.Context, s *scope, before v1alpha1.BeforeUpgrade, key types.NamespacedName) (string, error) {
	snapshot := &v1alpha1.ApplicationSnapshot{}
	err := d.readInto(ctx, snapshotResource, key, snapshot)
	switch {
	case apierrors.IsNotFound(err):
		return "", d.beginSnapshot(ctx, s, before, key)
	case err != nil:
		return "", err
	case snapshot.Labels[v1alpha1.BeforeUpgradeLabel] != s.inst.Name:
		return "", cannot("ApplicationSnapshot %s is not one that Waybill has made: delete it", key)
	case !snapshot.DeletionTimestamp.IsZero():
		return "", reconcile.Waiting(v1alpha1.SnapshotPendingReason, 0, "waiting for ApplicationSnapshot %s to be gone before another one is taken", key)
	case snapshot.Status.Phase == v1alpha1.SnapshotReady:
		if err := d.deleteOld(ctx, s, key.Namespace); err != nil { // no reason not to upgrade
			ctrl.LoggerFrom(ctx).Error(err, "delete old snapshots")
		}
		s.session.awaiting.snapshot = s.upgradeSnapshot(snapshot)
		return key.Name, nil
	case snapshot.Status.Phase == v1alpha1.SnapshotFailed:
		return "", d.failedSnapshot(ctx, s, snapshot)
	default:
		return "", d.awaitSnapshot(ctx, s, before, snapshot)
	}
}

// upgradeSnapshot is what the status keeps of a snapshot that was taken before an upgrade.
func (s *scope) upgradeSnapshot(taken *v1alpha1.ApplicationSnapshot) *v1alpha1.UpgradeSnapshot {
	kept := &v1alpha1.UpgradeSnapshot{
		Name: taken.Name, UID: taken.UID, SnapshotClassName: taken.Spec.SnapshotClassName, ApplicationName: taken.Spec.Source.ApplicationName,
	}
	if release := s.inst.Status.Release; release != nil {
		kept.Revision = int64(release.Revision)
	}
	return kept
}

// snapshotName is the same for each pass before an upgrade, also after a restart, and another one where the
// same upgrade is made once more.
func (s *scope) snapshotName() string {
	from := s.inst.Generation
	if release := s.inst.Status.Release; release != nil {
		from = int64(release.Revision)
	}
	h := sha256.Sum256(fmt.Appendf(nil, "%s %d %s %s", s.inst.UID, from, s.inst.Status.Begun, s.session.awaiting.moved))
	return s.inst.Name + "-before-" + hex.EncodeToString(h[:5])
}

// beginSnapshot creates the snapshot of the application that is installed; nothing if there is none.
func (d *driver) beginSnapshot(ctx context.Context, s *scope, before v1alpha1.BeforeUpgrade, key types.NamespacedName) error {
	app := &v1alpha1.Application{}
	switch err := d.readInto(ctx, appResource, types.NamespacedName{Namespace: key.Namespace, Name: s.inst.Name}, app); {
	case apierrors.IsNotFound(err):
		d.waits.set(s.key(), s.awaits()...)
		return nil
	case err != nil:
		return err
	}
	stateful, err := d.statefulOf(ctx, key.Namespace, s.inst.Name)
	if err != nil {
		return err
	}
	class := before.ApplicationSnapshotClassName
	if class == "" {
		if class, err = d.defaultClass(ctx); err != nil {
			return err
		}
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v1alpha1.ApplicationSnapshot{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ApplicationSnapshotKind},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name, Labels: map[string]string{v1alpha1.BeforeUpgradeLabel: s.inst.Name},
			Annotations: map[string]string{v1alpha1.RequestedAtAnnotation: s.requestedAt()},
		},
		Spec: v1alpha1.ApplicationSnapshotSpec{
			SnapshotClassName: class, Source: v1alpha1.SnapshotSource{Type: v1alpha1.SnapshotSourceApplication, ApplicationName: stateful},
			Tags: map[string]string{"installation": s.key().String(), "from": s.current().Version, "to": s.resolved.Version},
		},
	})
	if err != nil {
		return fmt.Errorf("encode ApplicationSnapshot %s: %w", key, err)
	}
	delete(content, "status")
	_, err = d.cluster.Dynamic().Resource(snapshotResource).Namespace(key.Namespace).Create(ctx, &unstructured.Unstructured{Object: content},
		metav1.CreateOptions{FieldManager: v1alpha1.FieldManager})
	switch {
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
		return cannot("create ApplicationSnapshot %s: %s", key, err)
	case err != nil && !apierrors.IsAlreadyExists(err):
		return fmt.Errorf("create ApplicationSnapshot %s: %w", key, err)
	}
	s.session.snapshotAt = s.now.Add(claimTime)
	return s.snapshotPending(key)
}

func (s *scope) snapshotPending(key types.NamespacedName) error {
	return reconcile.Waiting(v1alpha1.SnapshotPendingReason, 0, "waiting for ApplicationSnapshot %s to be ready before the upgrade to %s", key, s.resolved.Version)
}

// awaitSnapshot waits for a snapshot that is being taken; not for one that no controller takes.
func (d *driver) awaitSnapshot(ctx context.Context, s *scope, before v1alpha1.BeforeUpgrade, snapshot *v1alpha1.ApplicationSnapshot) error {
	key := types.NamespacedName{Namespace: snapshot.Namespace, Name: snapshot.Name}
	begun := snapshot.CreationTimestamp.Time
	if snapshot.Status.Phase == "" {
		if s.session.snapshotAt = begun.Add(claimTime); !s.isDue(s.session.snapshotAt) {
			return s.snapshotPending(key)
		}
		s.session.snapshotAt = time.Time{}
		if before.Snapshot == v1alpha1.SnapshotTry { // one that is taken later would not be from before
			if err := d.deleteSnapshot(ctx, key, snapshot.UID); err != nil {
				return err
			}
		}
		return cannot("no controller handles ApplicationSnapshot %s of class %q: run waybill-sync with role data in the cluster, or name another class", key, snapshot.Spec.SnapshotClassName)
	}
	if before.Snapshot == v1alpha1.SnapshotTry {
		if s.session.snapshotAt = begun.Add(tryTime); s.isDue(s.session.snapshotAt) {
			s.session.snapshotAt = time.Time{}
			return cannot("ApplicationSnapshot %s was not ready within %s", key, tryTime)
		}
	}
	return s.snapshotPending(key)
}

// failedSnapshot has a snapshot that failed taken once more if a user requests it.
func (d *driver) failedSnapshot(ctx context.Context, s *scope, snapshot *v1alpha1.ApplicationSnapshot) error {
	key := types.NamespacedName{Namespace: snapshot.Namespace, Name: snapshot.Name}
	if snapshot.Annotations[v1alpha1.RequestedAtAnnotation] == s.requestedAt() {
		why := "it has failed"
		if e := snapshot.Status.Error; e != nil {
			why = cmp.Or(e.Message, e.Reason, why)
		}
		return &untaken{why: fmt.Sprintf("ApplicationSnapshot %s: %s", key, why)}
	}
	if err := d.deleteSnapshot(ctx, key, snapshot.UID); err != nil {
		return err
	}
	return reconcile.Waiting(v1alpha1.SnapshotPendingReason, 0, "waiting for ApplicationSnapshot %s to be gone before another one is taken", key)
}

func (d *driver) deleteSnapshot(ctx context.Context, key types.NamespacedName, uid types.UID) error {
	err := d.cluster.Dynamic().Resource(snapshotResource).Namespace(key.Namespace).Delete(ctx, key.Name,
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete ApplicationSnapshot %s: %w", key, err)
	}
	return nil
}

// deleteOld deletes the oldest snapshots from before upgrades that are more than are kept.
func (d *driver) deleteOld(ctx context.Context, s *scope, namespace string) error {
	found, err := d.cluster.Metadata().Resource(snapshotResource).Namespace(namespace).List(ctx,
		metav1.ListOptions{LabelSelector: v1alpha1.BeforeUpgradeLabel + "=" + s.inst.Name})
	if err != nil {
		return fmt.Errorf("list ApplicationSnapshots: %w", err)
	}
	slices.SortFunc(found.Items, func(a, b metav1.PartialObjectMetadata) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	for _, old := range found.Items[min(len(found.Items), keptSnapshots):] {
		if old.Name == s.snapshotName() {
			continue
		}
		if err := d.deleteSnapshot(ctx, types.NamespacedName{Namespace: namespace, Name: old.Name}, old.UID); err != nil {
			return err
		}
	}
	return nil
}

// statefulOf returns the first StatefulApplication that says that an Application has data.
func (d *driver) statefulOf(ctx context.Context, namespace, application string) (string, error) {
	list := &v1alpha1.StatefulApplicationList{}
	if err := d.listInto(ctx, statefulResource, namespace, list); err != nil {
		return "", err
	}
	var names []string
	for i := range list.Items {
		if list.Items[i].GetApplicationName() == application {
			names = append(names, list.Items[i].Name)
		}
	}
	if len(names) == 0 {
		return "", cannot("no StatefulApplication says that Application %s/%s has data: create one with spec.applicationName %s", namespace, application, application)
	}
	return slices.Min(names), nil
}

func (d *driver) defaultClass(ctx context.Context) (string, error) {
	list := &v1alpha1.ApplicationSnapshotClassList{}
	if err := d.listInto(ctx, classResource, "", list); err != nil {
		return "", err
	}
	var names []string
	for i := range list.Items {
		if list.Items[i].Annotations[v1alpha1.DefaultClassAnnotation] == "true" {
			names = append(names, list.Items[i].Name)
		}
	}
	switch len(names) {
	case 0:
		return "", cannot("no ApplicationSnapshotClass has annotation %s: name one in spec.beforeUpgrade.applicationSnapshotClassName", v1alpha1.DefaultClassAnnotation)
	case 1:
		return names[0], nil
	default:
		slices.Sort(names)
		return "", cannot("the ApplicationSnapshotClasses %s all have annotation %s: name one in spec.beforeUpgrade.applicationSnapshotClassName",
			strings.Join(names, ", "), v1alpha1.DefaultClassAnnotation)
	}
}

// readInto reads an object of a kind that not every cluster has, so that nothing watches it.
func (d *driver) readInto(ctx context.Context, resource schema.GroupVersionResource, key types.NamespacedName, into any) error {
	found, err := d.cluster.Dynamic().Resource(resource).Namespace(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil {
		return explainedRead(err, "get %s %s", resource.Resource, key)
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, into)
}

func (d *driver) listInto(ctx context.Context, resource schema.GroupVersionResource, namespace string, into any) error {
	found, err := d.cluster.Dynamic().Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return explainedRead(err, "list %s", resource.Resource)
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(found.UnstructuredContent(), into)
}

// explainedRead says what could not be read. A right that is missing is one that a user has to grant.
func explainedRead(err error, format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	if apierrors.IsForbidden(err) {
		return cannot("%s: %s", what, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}
