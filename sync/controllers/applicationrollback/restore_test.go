package applicationrollback_test

import (
	"context"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/controllers/statefulapplication"
	"waybill.dev/waybill/sync/data/snapshot/metadata"
	snapshots "waybill.dev/waybill/sync/data/snapshot/volumes"
	"waybill.dev/waybill/test/env/csidriver"
	"waybill.dev/waybill/test/env/volumes"
	"waybill.dev/waybill/test/hub"
)

// restorer runs what restores applications beside what takes snapshots of them.
func (w *world) restorer() {
	w.T.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.restorer != nil {
		return
	}
	shared.restorer = hub.Start(w.T, w.Cluster, func(ctx context.Context, mgr ctrl.Manager, _ hub.Shared) error {
		return (&statefulapplication.Reconciler{
			Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder("statefulapplication"), Reader: mgr.GetAPIReader(),
			Definitions: &metadata.Store{Client: mgr.GetClient(), SystemNamespace: hub.SystemNamespace},
		}).SetupWithManager(ctx, mgr)
	})
}

// elsewhere returns the world of another namespace.
func (w *world) elsewhere() *world {
	o := *w.World
	o.Namespace = w.Cluster.Namespace(w.T)
	return &world{&o, w.Volumes}
}

// restored returns the application `db` as it is restored from a snapshot.
func (w *world) restored(from *v1alpha1.ApplicationSnapshot) *v1alpha1.StatefulApplication {
	w.T.Helper()
	kind := &v1alpha1.StatefulApplicationClass{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}, Handler: v1alpha1.DataHandler}
	w.Create(kind)
	restored := &v1alpha1.StatefulApplication{ObjectMeta: metav1.ObjectMeta{Name: "db"}, Spec: v1alpha1.StatefulApplicationSpec{
		ApplicationClassName: kind.Name, ApplicationName: "db",
		Source: &v1alpha1.DataSource{Type: v1alpha1.DataSourceSnapshot, SnapshotRef: &v1alpha1.SnapshotReference{Namespace: from.Namespace, Name: from.Name}},
	}}
	w.Create(restored)
	return restored
}

// S43: a snapshot whose time runs out in the middle of a restore is deleted after that, and so is what the restore needs.
func TestRestore_outlivesTheTTLOfItsSnapshot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.restorer()
	w.install(volumes.ImmediateClass)
	w.write(before)
	snapshot := w.snapshot("one")
	far := w.elsewhere()
	release := w.Driver.Inject(csidriver.Fault{Method: "CreateVolume", Namespace: far.Namespace, Code: 14, Message: "busy"})
	defer release()
	restored := far.restored(snapshot)
	hub.Await(far.World, restored, "it is being restored", func(a *v1alpha1.StatefulApplication) bool {
		return a.Status.Restore != nil && a.Status.Restore.Phase == v1alpha1.RestoreClaims
	})
	hub.Change(w.World, snapshot, func(s *v1alpha1.ApplicationSnapshot) { s.Spec.TTL.Duration = time.Second })
	assert.Contains(t, hub.AwaitReason(w.World, snapshot, v1alpha1.InUseReason),
		`the snapshot is deleted when the restore of StatefulApplication "db" of namespace "`+far.Namespace+`" has ended`)
	content := &v1alpha1.ApplicationSnapshotContent{}
	require.NoError(t, w.Client.Get(t.Context(), client.ObjectKey{Name: snapshot.Status.BoundSnapshotContentName}, content))
	assert.True(t, content.DeletionTimestamp.IsZero())

	release()
	hub.AwaitReady(far.World, restored)
	far.requireState(before)
	w.AwaitGone(snapshot, snapshot.Name)
	w.AwaitGone(content, content.Name)
}

// S72, S73, S75, S100: what is retained of a snapshot outlives its namespace, and an administrator can have it bound
// and restored in another one.
func TestRestore_ofASnapshotWhoseNamespaceIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.restorer()
	direct, err := snapshots.NewClient(w.Cluster.RESTConfig(), w.Client.RESTMapper())
	require.NoError(t, err)
	w.install(volumes.ImmediateClass)
	w.write(before)
	snapshot := w.snapshot("one")
	content := &v1alpha1.ApplicationSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: snapshot.Status.BoundSnapshotContentName}}
	t.Cleanup(func() { _ = w.Client.Delete(context.Background(), content) })
	hub.Change(w.World, content, func(c *v1alpha1.ApplicationSnapshotContent) { c.Spec.DeletionPolicy = v1alpha1.DeletionPolicyRetain })
	hub.Await(w.World, content, "the policy is observed", func(c *v1alpha1.ApplicationSnapshotContent) bool { return c.Status.ObservedGeneration == c.Generation })
	cut := &snapshotv1.VolumeSnapshot{}
	require.NoError(t, direct.Get(t.Context(), client.ObjectKey{Namespace: w.Namespace, Name: content.Spec.VolumeSnapshotRefs["data-db-0"].Name}, cut))
	kept := &snapshotv1.VolumeSnapshotContent{}
	require.NoError(t, direct.Get(t.Context(), client.ObjectKey{Name: *cut.Status.BoundVolumeSnapshotContentName}, kept))

	require.NoError(t, w.Client.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}}))
	w.AwaitGone(&corev1.Namespace{}, w.Namespace)
	hub.Await(w.World, content, "it is kept", func(c *v1alpha1.ApplicationSnapshotContent) bool {
		return len(c.Status.Conditions) > 0 && c.Status.Conditions[0].Message ==
			`ApplicationSnapshot "one" of namespace "`+w.Namespace+`" is gone; kept because deletionPolicy is Retain`
	})

	far := w.elsewhere()
	static := &snapshotv1.VolumeSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: far.Namespace}, Spec: snapshotv1.VolumeSnapshotContentSpec{
		DeletionPolicy: snapshotv1.VolumeSnapshotContentRetain, Driver: kept.Spec.Driver, VolumeSnapshotRef: corev1.ObjectReference{Namespace: far.Namespace, Name: "kept"},
		Source: snapshotv1.VolumeSnapshotContentSource{SnapshotHandle: kept.Status.SnapshotHandle},
	}}
	require.NoError(t, direct.Create(t.Context(), static))
	again := &snapshotv1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: far.Namespace, Name: "kept"}, Spec: snapshotv1.VolumeSnapshotSpec{
		Source: snapshotv1.VolumeSnapshotSource{VolumeSnapshotContentName: &static.Name},
	}}
	require.NoError(t, direct.Create(t.Context(), again))
	require.True(t, w.Eventually(func() bool {
		return direct.Get(t.Context(), client.ObjectKeyFromObject(again), again) == nil && again.Status != nil && ptr.Deref(again.Status.ReadyToUse, false)
	}))
	copied := &v1alpha1.ApplicationSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: far.Namespace}, Spec: *content.Spec.DeepCopy()}
	copied.Spec.SnapshotRef = &v1alpha1.NamespacedReference{Namespace: far.Namespace, Name: "one"}
	copied.Spec.VolumeSnapshotRefs = map[string]v1alpha1.NamespacedReference{"data-db-0": {Namespace: far.Namespace, Name: "kept"}}
	far.Create(copied)
	bound := &v1alpha1.ApplicationSnapshot{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Spec: v1alpha1.ApplicationSnapshotSpec{
		SnapshotClassName: class, SnapshotContentName: copied.Name,
	}}
	far.Create(bound)
	hub.AwaitReady(far.World, bound)
	hub.AwaitReady(far.World, far.restored(bound))
	far.requireState(before)
}
