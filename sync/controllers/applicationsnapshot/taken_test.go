package applicationsnapshot_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env/csidriver"
	"waybill.dev/waybill/test/hub"
)

// S1, S2, S3, S36, S37, S39, S44, S45, S46, S47, S49, S58, S61, S63, S64, S67, S68, S69, S70, S71, S85, S88, S89, S90, S92,
// S93, C20, C23, C63: the whole way.
func TestSnapshot_isTakenWhileTheApplicationIsQuiesced(t *testing.T) {
	w := newWorld(t)
	w.application("data", "more")
	w.action("lock", `echo lock >>data/log; echo '{"tags": {"position": "17", "who": "hook"}}'`, "")
	s := w.take(func(s *v1alpha1.ApplicationSnapshot) {
		s.Spec.Tags = map[string]string{"who": "user", "why": "upgrade"}
	})
	hub.AwaitReady(w.World, s)

	assert.Equal(t, v1alpha1.SnapshotReady, s.Status.Phase)
	assert.Equal(t, v1alpha1.ConsistencyApplication, s.Status.Consistency)
	assert.Equal(t, "2Mi", s.Status.Size)
	assert.Positive(t, s.Status.QuiescedFor.Duration)
	assert.Nil(t, s.Status.Error)
	for _, condition := range []string{
		v1alpha1.MetadataSnapshotCompletedCondition, v1alpha1.PreHookExecutionCompletedCondition,
		v1alpha1.VolumeSnapshotCompletedCondition, v1alpha1.PostHookExecutionCompletedCondition, v1alpha1.SnapshotReadyCondition,
	} {
		assert.True(t, meta.IsStatusConditionTrue(s.Status.Conditions, condition), condition)
	}
	assert.Nil(t, meta.FindStatusCondition(s.Status.Conditions, v1alpha1.SnapshotFailedCondition))

	assert.Equal(t, "lock unlock", w.sh("db-0", "cat data/log"))
	hooks := &v1alpha1.ExecutionHookList{}
	require.NoError(t, w.Client.List(t.Context(), hooks, client.InNamespace(w.Namespace)))
	require.Len(t, hooks.Items, 2)
	assert.Contains(t, hooks.Items[0].Name, "before-lock-")
	assert.Contains(t, hooks.Items[1].Name, "before-unlock-")
	c := w.content(s)
	assert.Equal(t, "lock", w.read(c, "data-db-0", "cat log"), "it was cut in between")
	assert.Len(t, c.Spec.VolumeSnapshotRefs, 2)
	assert.Equal(t, map[string]string{"position": "17", "who": "user", "why": "upgrade"}, c.Spec.Tags)
	assert.Equal(t, &v1alpha1.NamespacedReference{Namespace: w.Namespace, Name: "before", UID: string(s.UID)}, c.Spec.SnapshotRef)
	assert.Equal(t, s.Status.Metadata, c.Spec.MetadataHandle)
	assert.Equal(t, v1alpha1.DeletionPolicyDelete, c.Spec.DeletionPolicy)
	assert.Equal(t, v1alpha1.ConsistencyApplication, c.Status.Consistency)
	assert.Equal(t, "db", c.Status.ApplicationName)
	assert.Equal(t, []string{"applications.apps.waybill.dev", "configmaps", "persistentvolumeclaims", "statefulsets.apps"}, c.Status.Kinds)
	hub.AwaitReady(w.World, c)
}

// S5, S32, S54: a snapshot of another controller's class is that controller's.
func TestSnapshot_ofAnotherSnapshotterIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.class.Snapshotter, w.class.Parameters = "others.example.com", map[string]string{"a": "b"}
	theirs := w.take()
	w.class = &v1alpha1.ApplicationSnapshotClass{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace + "-ours"}, Snapshotter: v1alpha1.DataHandler}
	w.Create(w.class)
	ours := w.snapshot("ours", func(s *v1alpha1.ApplicationSnapshot) { s.Spec.SnapshotClassName = w.class.Name })
	w.awaitFailed(ours)
	require.True(t, w.Exists(theirs, theirs.Name))
	assert.Empty(t, theirs.Status.Phase)
	assert.Empty(t, theirs.Finalizers)
}

// S40, S56: only the claims that the filter selects.
func TestSnapshot_filtersClaims(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.application("data", "cache")
	w.class.PreHooks, w.class.PostHooks = nil, nil
	s := w.take(func(s *v1alpha1.ApplicationSnapshot) {
		s.Spec.PersistentVolumeClaimFilter = &metav1.LabelSelector{MatchLabels: map[string]string{"volume": "data"}}
	})
	hub.AwaitReady(w.World, s)
	assert.Equal(t, v1alpha1.ConsistencyPerVolume, s.Status.Consistency)
	assert.Contains(t, w.content(s).Spec.VolumeSnapshotRefs, "data-db-0")
	assert.Len(t, w.volumeSnapshots(), 1)
}

// C23, C63: all volumes at one moment, and the label by which they are selected does not stay.
func TestSnapshot_ofAGroup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.application("data", "more")
	w.class.PreHooks, w.class.PostHooks = nil, nil
	w.class.VolumeGroupSnapshotClassNames = map[string]string{driver: groupClass}
	s := w.take()
	hub.AwaitReady(w.World, s)
	assert.Equal(t, v1alpha1.ConsistencyGroup, s.Status.Consistency)
	assert.Len(t, w.content(s).Spec.VolumeSnapshotRefs, 2)
	assert.NotEqual(t, s.Status.Volumes[0].VolumeSnapshot, s.Status.Volumes[1].VolumeSnapshot)
	claim := &corev1.PersistentVolumeClaim{}
	require.True(t, w.Exists(claim, "data-db-0"))
	assert.NotContains(t, claim.Labels, v1alpha1.SnapshotGroupLabel)
	require.NoError(t, w.Client.Delete(t.Context(), s))
	w.AwaitGone(s, s.Name)
	assert.True(t, w.Eventually(func() bool { return len(w.volumeSnapshots()) == 0 }), "they go with their group")
}

// C63: no Pod has the volumes while they are cut, and the workloads are as before afterwards.
func TestSnapshot_isCold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.application("data")
	w.class.PreHooks, w.class.PostHooks, w.class.Quiesce = nil, nil, v1alpha1.QuiesceScaleDown
	before := w.awaitRunning("db-0")
	defer w.volumes.Driver.Inject(csidriver.Fault{Method: "CreateSnapshot", Namespace: w.Namespace, Delay: 2e9})()
	s := w.take()
	w.awaitPhase(s, v1alpha1.SnapshotCutting)
	assert.Equal(t, []v1alpha1.ObjectReference{{Group: "apps", Kind: "StatefulSet", Namespace: w.Namespace, Name: "db"}}, s.Status.Held)
	assert.Equal(t, w.Namespace+"/snapshot:"+s.Name, w.set().Annotations[v1alpha1.HeldByAnnotation], "who delivers it leaves it alone")
	hub.AwaitReady(w.World, s)
	assert.Empty(t, s.Status.Held)
	assert.NotContains(t, w.set().Annotations, v1alpha1.HeldByAnnotation)
	assert.Equal(t, v1alpha1.ConsistencyCold, s.Status.Consistency)
	require.Len(t, s.Status.Scaled, 1)
	assert.Equal(t, int32(1), s.Status.Scaled[0].Replicas)
	assert.NotEqual(t, before.UID, w.awaitRunning("db-0").UID)
}

// S4, C21, S71: the definitions are where the class says.
func TestSnapshot_storesDefinitionsOnDisk(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.application()
	w.class.PreHooks, w.class.PostHooks, w.class.Metadata = nil, nil, v1alpha1.MetadataOnDisk
	s := w.take()
	hub.AwaitReady(w.World, s)
	assert.NotNil(t, w.content(s).Spec.MetadataHandle.OnDisk)
	assert.Positive(t, w.stored(s))
	require.NoError(t, w.Client.Delete(t.Context(), s))
	w.AwaitGone(s, s.Name)
	assert.Zero(t, w.stored(s))
}
