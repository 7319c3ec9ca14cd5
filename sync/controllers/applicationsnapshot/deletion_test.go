package applicationsnapshot_test

import (
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// S43: deleted that long after it is ready, or has failed, with all that it made.
func TestSnapshot_isDeletedAfterItsTTL(t *testing.T) {
	for name, class := range map[string]string{"ready": "", "failed": "none"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.application("data")
			s := w.take(func(s *v1alpha1.ApplicationSnapshot) {
				s.Spec.TTL.Duration = time.Second
				if class != "" {
					s.Spec.SnapshotClassName = class
				}
			})
			w.AwaitGone(s, s.Name)
			assert.Empty(t, w.volumeSnapshots())
			assert.Zero(t, w.stored(s))
		})
	}
}

// S65, S72, S73: what becomes of the content is for the class to say, and the content outranks it.
func TestSnapshot_deletionPolicy(t *testing.T) {
	const remove, retain = v1alpha1.DeletionPolicyDelete, v1alpha1.DeletionPolicyRetain
	for name, test := range map[string]struct {
		class, content v1alpha1.DeletionPolicy
		kept           bool
	}{
		"delete":                {remove, "", false},
		"retain":                {retain, "", true},
		"retained by content":   {remove, retain, true},
		"deleted by content":    {retain, remove, false},
		"default is to delete":  {"", "", false},
		"retained by the class": {retain, retain, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.application("data")
			w.class.PreHooks, w.class.PostHooks, w.class.DeletionPolicy = nil, nil, test.class
			s := hub.AwaitReady(w.World, w.take())
			c := w.content(s)
			w.T.Cleanup(func() { w.drop(c) })
			if test.content != "" {
				hub.Change(w.World, c, func(c *v1alpha1.ApplicationSnapshotContent) { c.Spec.DeletionPolicy = test.content })
			}
			require.NoError(t, w.Client.Delete(t.Context(), s))
			w.AwaitGone(s, s.Name)
			if !test.kept {
				assert.False(t, w.Exists(c, c.Name))
				assert.Empty(t, w.volumeSnapshots())
				assert.Zero(t, w.stored(s))
				return
			}
			hub.Await(w.World, c, "not kept", func(c *v1alpha1.ApplicationSnapshotContent) bool {
				return len(c.Status.Conditions) > 0 && c.Status.Conditions[0].Message ==
					`ApplicationSnapshot "before" of namespace "`+w.Namespace+`" is gone; kept because deletionPolicy is Retain`
			})
			assert.Len(t, w.volumeSnapshots(), 1)
			assert.Equal(t, 1, w.stored(s))
		})
	}
}

// drop deletes a content, with nothing of what it holds.
func (w *world) drop(c *v1alpha1.ApplicationSnapshotContent) {
	_ = w.Client.Delete(w.T.Context(), c)
}

// S73: with Retain, the snapshots of the driver are there even when the namespace is not.
func TestSnapshot_isRetainedWithoutItsNamespace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.application("data")
	w.class.PreHooks, w.class.PostHooks, w.class.DeletionPolicy = nil, nil, v1alpha1.DeletionPolicyRetain
	s := hub.AwaitReady(w.World, w.take())
	c := w.content(s)
	of := snapshotv1.VolumeSnapshot{}
	require.NoError(t, w.direct.Get(t.Context(), client.ObjectKey{Namespace: w.Namespace, Name: c.Spec.VolumeSnapshotRefs["data-db-0"].Name}, &of))
	assert.Equal(t, string(of.UID), c.Spec.VolumeSnapshotRefs["data-db-0"].UID)
	require.NoError(t, w.Client.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}}))
	w.AwaitGone(s, s.Name)
	w.AwaitGone(&corev1.Namespace{}, w.Namespace)
	kept := &snapshotv1.VolumeSnapshotContent{}
	require.NoError(t, w.direct.Get(t.Context(), client.ObjectKey{Name: *of.Status.BoundVolumeSnapshotContentName}, kept))
	assert.NotEmpty(t, kept.Status.SnapshotHandle)
	assert.True(t, kept.DeletionTimestamp.IsZero())
	assert.True(t, w.Exists(c, c.Name))
	assert.Equal(t, 1, w.stored(s))
}

// S74: a content that is bound outlives its deletion.
func TestContent_isHeldByItsSnapshot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.application("data")
	w.class.PreHooks, w.class.PostHooks = nil, nil
	s := hub.AwaitReady(w.World, w.take())
	c := w.content(s)
	require.NoError(t, w.Client.Delete(t.Context(), c))
	assert.Equal(t, `the content is deleted with ApplicationSnapshot "before" of namespace "`+w.Namespace+`", which it is bound to`,
		hub.AwaitReason(w.World, c, v1alpha1.InUseReason))
	assert.Len(t, w.volumeSnapshots(), 1)
	require.NoError(t, w.Client.Delete(t.Context(), s))
	w.AwaitGone(s, s.Name)
	w.AwaitGone(c, c.Name)
	assert.Empty(t, w.volumeSnapshots())
}

// S43: nothing is deleted under a restore, or a rollback, that needs it.
func TestSnapshot_isHeldByItsUsers(t *testing.T) {
	for name, use := range map[string]struct {
		begin, end func(w *world, s *v1alpha1.ApplicationSnapshot)
		message    string
	}{
		"restore": {
			func(w *world, s *v1alpha1.ApplicationSnapshot) {
				clone := &v1alpha1.StatefulApplication{
					ObjectMeta: metav1.ObjectMeta{Name: "clone"},
					Spec: v1alpha1.StatefulApplicationSpec{Source: &v1alpha1.DataSource{
						Type: v1alpha1.DataSourceSnapshot, SnapshotRef: &v1alpha1.SnapshotReference{Name: s.Name},
					}},
				}
				w.Create(clone)
				clone.Status.Restore = &v1alpha1.RestoreStatus{Phase: v1alpha1.RestoreClaims, ContentName: s.Status.BoundSnapshotContentName}
				require.NoError(w.T, w.Client.Status().Update(w.T.Context(), clone))
			},
			func(w *world, _ *v1alpha1.ApplicationSnapshot) {
				clone := &v1alpha1.StatefulApplication{}
				require.True(w.T, w.Exists(clone, "clone"))
				clone.Status.Restore.Phase = v1alpha1.RestoreCompleted
				require.NoError(w.T, w.Client.Status().Update(w.T.Context(), clone))
			},
			`the snapshot is deleted when the restore of StatefulApplication "clone" of namespace`,
		},
		"rollback": {
			func(w *world, s *v1alpha1.ApplicationSnapshot) {
				back := &v1alpha1.ApplicationRollback{
					ObjectMeta: metav1.ObjectMeta{Name: "back"},
					Spec: v1alpha1.ApplicationRollbackSpec{
						SnapshotClassName: w.class.Name, ApplicationName: "db",
						Source: v1alpha1.DataSource{Type: v1alpha1.DataSourceSnapshot, SnapshotRef: &v1alpha1.SnapshotReference{Name: s.Name}},
					},
				}
				w.Create(back)
				back.Status.Phase = v1alpha1.RollbackSwapping
				require.NoError(w.T, w.Client.Status().Update(w.T.Context(), back))
			},
			func(w *world, _ *v1alpha1.ApplicationSnapshot) {
				back := &v1alpha1.ApplicationRollback{}
				require.True(w.T, w.Exists(back, "back"))
				back.Status.Phase = v1alpha1.RollbackCompleted
				require.NoError(w.T, w.Client.Status().Update(w.T.Context(), back))
			},
			`the snapshot is deleted when ApplicationRollback "back" of namespace`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.application("data")
			w.class.PreHooks, w.class.PostHooks = nil, nil
			s := hub.AwaitReady(w.World, w.take())
			use.begin(w, s)
			shared.Lock()
			for _, seen := range []client.Object{&v1alpha1.StatefulApplication{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "clone"}},
				&v1alpha1.ApplicationRollback{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "back"}}} {
				if w.Exists(seen, seen.GetName()) {
					w.AwaitSeen(shared.process, seen)
				}
			}
			shared.Unlock()
			require.NoError(t, w.Client.Delete(t.Context(), s))
			assert.Contains(t, hub.AwaitReason(w.World, s, v1alpha1.InUseReason), use.message)
			assert.Len(t, w.volumeSnapshots(), 1)
			use.end(w, s)
			w.AwaitGone(s, s.Name)
			assert.Empty(t, w.volumeSnapshots())
		})
	}
}
