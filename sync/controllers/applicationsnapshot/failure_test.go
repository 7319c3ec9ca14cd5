package applicationsnapshot_test

import (
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/data/scale"
	"waybill.dev/waybill/test/env/csidriver"
	"waybill.dev/waybill/test/hub"
)

// shortly has the snapshots of a snapshot be ready within two seconds.
func shortly(s *v1alpha1.ApplicationSnapshot) { s.Spec.VolumeSnapshotTimeoutSeconds = ptr.To[int64](2) }

// lessShortly leaves time to cut the snapshots, on a busy machine.
func lessShortly(s *v1alpha1.ApplicationSnapshot) {
	s.Spec.VolumeSnapshotTimeoutSeconds = ptr.To[int64](10)
}

// S42, S48, S50, S94, S95: whatever fails once the application may be quiesced, it is released, and nothing
// is left of the snapshot.
func TestSnapshot_releasesWhateverFails(t *testing.T) {
	var otherIsReady, isReady func() // each of the one case that sets it
	for name, test := range map[string]struct {
		reason, message string
		log             string // on the application's volume afterwards
		other           string // on that of its second Pod, if it has one
		before          func(w *world)
		during          func(w *world, s *v1alpha1.ApplicationSnapshot)
		edit            func(s *v1alpha1.ApplicationSnapshot)
		claims          []string // by default two
	}{
		"a pre-hook fails": {
			reason: v1alpha1.HookFailedReason, message: `pre-hook "lock": HookAction "lock" failed in Pod "db-0": the command exited with code 3`,
			log:    "lock unlock",
			before: func(w *world) { w.action("lock", "echo lock >>data/log; exit 3", "") },
		},
		"the second pre-hook fails": {
			// It is released as well: how far it came is not known.
			reason: v1alpha1.HookFailedReason, message: `pre-hook "second": HookAction "second" failed`,
			log: "lock unlock", other: "second unlock",
			before: func(w *world) {
				w.action("second", "echo second >>data/log; exit 1", "")
				w.twoPods()
			},
		},
		"the first of two pre-hooks fails": {
			reason: v1alpha1.HookFailedReason, message: `pre-hook "lock": HookAction "lock" failed`,
			log: "unlock", other: "nothing",
			before: func(w *world) {
				w.action("lock", "exit 1", "")
				w.action("second", "echo second >>data/log", "")
				w.twoPods()
			},
		},
		"a post-hook fails in one of two Pods": {
			reason: v1alpha1.PostHookFailedReason, message: `post-hook "unlock" failed in Pod "db-0"`,
			log: "lock", other: "second unlock",
			before: func(w *world) {
				w.action("second", "echo second >>data/log", "")
				w.action("unlock", "test $HOSTNAME != db-0 && echo unlock >>data/log", "")
				w.twoPods()
			},
		},
		"a pre-hook hangs": {
			reason: v1alpha1.HookFailedReason, message: "the command did not exit within 1s", log: "lock unlock",
			before: func(w *world) {
				w.action("lock", "echo lock >>data/log; sleep 600", "")
				hub.Change(w.World, &v1alpha1.HookAction{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "lock"}},
					func(a *v1alpha1.HookAction) { a.Spec.Timeout.Duration = 1e9 })
			},
		},
		"a post-hook hangs": {
			reason: v1alpha1.PostHookFailedReason, log: "lock unlock",
			message: `post-hook "unlock" failed in Pod "db-0": the command did not exit within 1s; it may still run; the application may still be quiesced`,
			before: func(w *world) {
				w.action("unlock", "echo unlock >>data/log; sleep 600", "")
				hub.Change(w.World, &v1alpha1.HookAction{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "unlock"}},
					func(a *v1alpha1.HookAction) { a.Spec.Timeout.Duration = 1e9 })
			},
		},
		"a pre-hook writes 10 MB and fails": {
			reason: v1alpha1.HookFailedReason, message: "the command exited with code 3: xxx", log: "lock unlock",
			before: func(w *world) {
				w.action("lock", "echo lock >>data/log; head -c 10000000 /dev/zero | tr '\\0' x | tee /dev/stderr; exit 3", "")
			},
		},
		"its Pod goes while a pre-hook runs": {
			// What takes its place was never quiesced.
			reason: v1alpha1.HookFailedReason, message: `HookAction "lock" failed in Pod "db-0"`, log: "lock",
			before: func(w *world) { w.action("lock", "echo lock >>data/log; sleep 600", "") },
			during: func(w *world, _ *v1alpha1.ApplicationSnapshot) {
				require.True(w.T, w.Eventually(func() bool { return w.sh("db-0", "cat data/log || true") == "lock" }))
				require.NoError(w.T, w.Client.Delete(w.T.Context(), w.awaitRunning("db-0")))
			},
		},
		"a post-hook fails": {
			reason: v1alpha1.PostHookFailedReason, log: "lock",
			message: `post-hook "unlock" failed in Pod "db-0": the command exited with code 4; the application may still be quiesced`,
			before:  func(w *world) { w.action("unlock", "exit 4", "") },
		},
		"the driver fails for one of five claims": {
			reason: v1alpha1.VolumeSnapshotFailedReason, message: `the VolumeSnapshot of PersistentVolumeClaim "more-db-0" failed: `,
			log: "lock unlock", claims: []string{"data", "more", "third", "fourth", "fifth"},
			before: func(w *world) {
				w.T.Cleanup(w.volumes.Driver.Inject(csidriver.Fault{
					Method: "CreateSnapshot", Namespace: w.Namespace, Name: "more-db-0", Code: codes.ResourceExhausted, Message: "the pool is full",
				}))
			},
		},
		"the driver does not cut in time": {
			reason: v1alpha1.VolumeSnapshotFailedReason, message: "the VolumeSnapshots of PersistentVolumeClaims data-db-0, more-db-0 were not taken within 2s",
			log: "lock unlock", edit: shortly,
			before: func(w *world) {
				w.T.Cleanup(w.volumes.Driver.Inject(csidriver.Fault{Method: "CreateSnapshot", Namespace: w.Namespace, Delay: hub.Limit}))
			},
		},
		"a snapshot is not ready in time": {
			reason: v1alpha1.VolumeSnapshotFailedReason, message: "were not ready to use within 10s", log: "lock unlock", edit: lessShortly,
			before: func(w *world) {
				w.T.Cleanup(w.volumes.Driver.Inject(csidriver.Fault{Method: "CreateSnapshot", Namespace: w.Namespace, NotReady: true}))
			},
		},
		"a snapshot is cut and then in error": {
			reason: v1alpha1.VolumeSnapshotFailedReason, message: "PersistentVolumeClaims more-db-0 were not ready to use within 1s", log: "lock unlock",
			before: func(w *world) {
				fault := csidriver.Fault{Method: "CreateSnapshot", Namespace: w.Namespace, Name: "more-db-0"}
				cut, fails := fault, fault
				cut.NotReady, cut.Times = true, 1
				fails.Code, fails.Message = codes.Internal, "the copy is lost"
				w.T.Cleanup(w.volumes.Driver.Inject(cut))
				w.T.Cleanup(w.volumes.Driver.Inject(fails))
			},
			during: func(w *world, s *v1alpha1.ApplicationSnapshot) {
				w.awaitPhase(s, v1alpha1.SnapshotWaiting)
				w.awaitSnapshot(s.Status.Volumes[1].VolumeSnapshot, func(v *snapshotv1.VolumeSnapshotStatus) bool { return v.Error != nil })
				w.hurry(s)
			},
		},
		"a snapshot is ready and then in error": {
			reason: v1alpha1.VolumeSnapshotFailedReason, message: "PersistentVolumeClaims data-db-0 were not ready to use within 1s", log: "lock unlock",
			before: func(w *world) {
				w.T.Cleanup(w.volumes.Driver.Inject(csidriver.Fault{ // when it is asked again
					Method: "CreateSnapshot", Namespace: w.Namespace, Name: "data-db-0", Skip: 1, Code: codes.Internal, Message: "the copy is lost",
				}))
				otherIsReady = w.volumes.Driver.Inject(csidriver.Fault{Method: "CreateSnapshot", Namespace: w.Namespace, Name: "more-db-0", NotReady: true})
				w.T.Cleanup(otherIsReady)
			},
			during: func(w *world, s *v1alpha1.ApplicationSnapshot) {
				w.awaitPhase(s, v1alpha1.SnapshotWaiting)
				w.lose(s.Status.Volumes[0].VolumeSnapshot)
				otherIsReady()
				hub.Await(w.World, s, "the other is not ready", func(s *v1alpha1.ApplicationSnapshot) bool {
					return !s.Status.Volumes[0].Ready && s.Status.Volumes[1].Ready
				})
				require.Equal(w.T, v1alpha1.SnapshotWaiting, s.Status.Phase)
				w.hurry(s)
			},
		},
		"a VolumeSnapshot is deleted before it is ready": {
			reason: v1alpha1.VolumeSnapshotFailedReason, message: `the VolumeSnapshot of PersistentVolumeClaim "data-db-0" was deleted`, log: "lock unlock",
			before: func(w *world) {
				w.T.Cleanup(w.volumes.Driver.Inject(csidriver.Fault{Method: "CreateSnapshot", Namespace: w.Namespace, NotReady: true}))
			},
			during: func(w *world, s *v1alpha1.ApplicationSnapshot) {
				w.awaitPhase(s, v1alpha1.SnapshotWaiting)
				gone := &snapshotv1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: s.Status.Volumes[0].VolumeSnapshot}}
				require.NoError(w.T, w.direct.Delete(w.T.Context(), gone))
			},
		},
		"what was cut is lost, and cut again when the application is not at rest any more": {
			reason: v1alpha1.NotQuiescedReason, message: "the VolumeSnapshotContents of PersistentVolumeClaims data-db-0 were deleted after their volumes were cut",
			log: "lock unlock",
			before: func(w *world) {
				isReady = w.volumes.Driver.Inject(csidriver.Fault{Method: "CreateSnapshot", Namespace: w.Namespace, NotReady: true})
				w.T.Cleanup(isReady)
			},
			during: func(w *world, s *v1alpha1.ApplicationSnapshot) {
				w.awaitPhase(s, v1alpha1.SnapshotWaiting)
				w.cutAgain(s.Status.Volumes[0].VolumeSnapshot)
				isReady()
			},
		},
		"its container restarts in between": {
			reason: v1alpha1.NotQuiescedReason, message: `container "main" of Pod "db-0" has restarted after pre-hook "lock" ran in it`,
			log: "lock unlock",
			before: func(w *world) {
				w.T.Cleanup(w.volumes.Driver.Inject(csidriver.Fault{Method: "CreateSnapshot", Namespace: w.Namespace, Delay: 1e9}))
			},
			during: func(w *world, s *v1alpha1.ApplicationSnapshot) {
				w.awaitPhase(s, v1alpha1.SnapshotCutting)
				pod := w.awaitRunning("db-0")
				before := pod.DeepCopy()
				pod.Status.ContainerStatuses[0].RestartCount = 1
				require.NoError(w.T, w.Client.Status().Patch(w.T.Context(), pod, client.MergeFrom(before)))
			},
		},
		"its Pod goes in between": {
			reason: v1alpha1.NotQuiescedReason, message: `Pod "db-0" is gone after pre-hook "lock" ran in it`, log: "lock",
			before: func(w *world) {
				w.T.Cleanup(w.volumes.Driver.Inject(csidriver.Fault{Method: "CreateSnapshot", Namespace: w.Namespace, Delay: 1e9}))
			},
			during: func(w *world, s *v1alpha1.ApplicationSnapshot) {
				w.awaitPhase(s, v1alpha1.SnapshotCutting)
				require.NoError(w.T, w.Client.Delete(w.T.Context(), w.awaitRunning("db-0")))
			},
		},
		"its StatefulSet is scaled in between": {
			// The snapshot is that of the replicas whose definitions were captured.
			log: "lock unlock", other: "nothing",
			before: func(w *world) {
				w.action("lock", "echo lock >>data/log; while ! test -e data/go; do sleep 0.1; done", "")
			},
			during: func(w *world, s *v1alpha1.ApplicationSnapshot) {
				require.True(w.T, w.Eventually(func() bool { return w.sh("db-0", "cat data/log || true") == "lock" }))
				set := w.set()
				set.Spec.Replicas = ptr.To[int32](2)
				require.NoError(w.T, w.Client.Update(w.T.Context(), set))
				w.awaitRunning("db-1")
				w.sh("db-0", "touch data/go")
				hub.AwaitReady(w.World, s)
				require.Len(w.T, s.Status.Volumes, 2)
			},
		},
		"the class is deleted in between": {
			log: "lock unlock",
			before: func(w *world) {
				w.action("lock", "echo lock >>data/log; while ! test -e data/go; do sleep 0.1; done", "")
			},
			during: func(w *world, s *v1alpha1.ApplicationSnapshot) {
				w.awaitPhase(s, v1alpha1.SnapshotQuiescing)
				require.NoError(w.T, w.Client.Delete(w.T.Context(), w.class))
				w.sh("db-0", "touch data/go")
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if test.claims == nil {
				test.claims = []string{"data", "more"}
			}
			w.application(test.claims...)
			test.before(w)
			s := w.take(func(s *v1alpha1.ApplicationSnapshot) {
				if test.edit != nil {
					test.edit(s)
				}
			})
			if test.during != nil {
				test.during(w, s)
			}
			if test.reason == "" {
				hub.AwaitReady(w.World, s)
			} else {
				failure := w.awaitFailed(s)
				assert.Equal(t, test.reason, failure.Reason)
				assert.Contains(t, failure.Message, test.message)
				assert.NotNil(t, failure.Time)
				assert.Empty(t, w.volumeSnapshots())
				assert.Zero(t, w.stored(s))
			}
			w.awaitRunning("db-0")
			assert.Equal(t, test.log, w.sh("db-0", "cat data/log"))
			if test.other != "" {
				assert.Equal(t, test.other, w.sh("db-1", "cat data/log || echo nothing"))
			}
		})
	}
}

// awaitSnapshot waits until the status of a VolumeSnapshot is as wanted, and returns what it is bound to.
func (w *world) awaitSnapshot(name string, wanted func(*snapshotv1.VolumeSnapshotStatus) bool) (content string) {
	w.T.Helper()
	of := &snapshotv1.VolumeSnapshot{}
	require.True(w.T, w.Eventually(func() bool {
		err := w.direct.Get(w.T.Context(), client.ObjectKey{Namespace: w.Namespace, Name: name}, of)
		return err == nil && of.Status != nil && wanted(of.Status)
	}), "%+v", of.Status)
	return ptr.Deref(of.Status.BoundVolumeSnapshotContentName, "")
}

// lose deletes what a VolumeSnapshot that is ready is bound to, and returns when that is in error.
func (w *world) lose(name string) {
	w.T.Helper()
	bound := w.awaitSnapshot(name, func(s *snapshotv1.VolumeSnapshotStatus) bool { return ptr.Deref(s.ReadyToUse, false) })
	content := &snapshotv1.VolumeSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: bound}}
	require.NoError(w.T, w.direct.Delete(w.T.Context(), content))
	unprotected := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	require.NoError(w.T, client.IgnoreNotFound(w.direct.Patch(w.T.Context(), content, unprotected)))
	w.awaitSnapshot(name, func(s *snapshotv1.VolumeSnapshotStatus) bool { return s.Error != nil && !*s.ReadyToUse })
}

// cutAgain has the driver lose what a VolumeSnapshot is bound to, and returns when it has taken another snapshot.
func (w *world) cutAgain(name string) {
	w.T.Helper()
	var cut metav1.Time
	bound := w.awaitSnapshot(name, func(s *snapshotv1.VolumeSnapshotStatus) bool {
		if s.CreationTime != nil {
			cut = *s.CreationTime
		}
		return s.CreationTime != nil
	})
	require.True(w.T, w.Eventually(func() bool { return time.Now().Truncate(time.Second).After(cut.Time) })) // which is cut to the second
	content := &snapshotv1.VolumeSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: bound}}
	deleted := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"snapshot.storage.kubernetes.io/volumesnapshot-being-deleted":"yes"}}}`))
	require.NoError(w.T, w.direct.Patch(w.T.Context(), content, deleted))
	lost := content.UID
	require.NoError(w.T, w.direct.Delete(w.T.Context(), content))
	require.True(w.T, w.Eventually(func() bool {
		err := w.direct.Get(w.T.Context(), client.ObjectKeyFromObject(content), content)
		return err == nil && content.UID != lost && content.Status != nil && content.Status.CreationTime != nil
	}), "not cut again: %+v", content)
}

// hurry has the time be over in which the VolumeSnapshots of a snapshot have to be ready.
func (w *world) hurry(s *v1alpha1.ApplicationSnapshot) {
	w.T.Helper()
	hub.Change(w.World, s, func(s *v1alpha1.ApplicationSnapshot) { s.Spec.VolumeSnapshotTimeoutSeconds = ptr.To[int64](1) })
}

// twoPods gives the application a second Pod, and each a pre-hook of its own.
func (w *world) twoPods() {
	w.T.Helper()
	set := w.set()
	set.Spec.Replicas = ptr.To[int32](2)
	require.NoError(w.T, w.Client.Update(w.T.Context(), set))
	w.awaitRunning("db-1")
	named := func(pod string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"statefulset.kubernetes.io/pod-name": pod}}
	}
	w.class.PreHooks = []v1alpha1.HookSpec{
		{Name: "lock", ActionName: "lock", PodFilter: named("db-0")}, {Name: "second", ActionName: "second", PodFilter: named("db-1")},
	}
}

// C20, C63: a hook that may fail does not promise what it has not done.
func TestSnapshot_promisesWhatHooksDid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.application("data")
	w.action("lock", "exit 3", v1alpha1.HookErrorContinue)
	s := hub.AwaitReady(w.World, w.take())
	assert.Equal(t, v1alpha1.ConsistencyPerVolume, s.Status.Consistency)
	assert.Equal(t, "unlock", w.sh("db-0", "cat data/log"))
}

// C63: what was scaled to zero comes back, and somebody who scales it up meanwhile wins.
func TestSnapshot_scalesUpWhateverFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.application("data")
	w.class.PreHooks, w.class.PostHooks, w.class.Quiesce = nil, nil, v1alpha1.QuiesceScaleDown
	slow := w.volumes.Driver.Inject(csidriver.Fault{Method: "CreateSnapshot", Namespace: w.Namespace, Delay: 2e9})
	defer slow()
	s := w.take()
	w.awaitPhase(s, v1alpha1.SnapshotCutting)
	require.NoError(t, scale.Up(t.Context(), w.direct, v1alpha1.ScaledWorkload{ObjectReference: s.Status.Scaled[0].ObjectReference, Replicas: 2}))
	failure := w.awaitFailed(s)
	assert.Equal(t, v1alpha1.NotQuiescedReason, failure.Reason)
	assert.Contains(t, failure.Message, `StatefulSet "db" was scaled to 2 before its volumes were cut`)
	w.awaitRunning("db-1")
	assert.True(t, s.Status.Scaled[0].Released)
}

// S95: deleted while the application is quiesced, it is released first.
func TestSnapshot_deletedMeanwhileReleases(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.application("data")
	defer w.volumes.Driver.Inject(csidriver.Fault{Method: "CreateSnapshot", Namespace: w.Namespace, Delay: hub.Limit})()
	s := w.take()
	w.awaitPhase(s, v1alpha1.SnapshotCutting)
	require.NoError(t, w.Client.Delete(t.Context(), s))
	w.AwaitGone(s, s.Name)
	assert.Equal(t, "lock unlock", w.sh("db-0", "cat data/log"))
	assert.Empty(t, w.volumeSnapshots())
	assert.Zero(t, w.stored(s))
}

// S95: what a pre-hook does after the post-hook would stay, so that one waits for the other.
func TestSnapshot_deletedWhileAPreHookRunsReleasesAfterIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.application("data")
	w.action("lock", "echo begin >>data/log; while ! test -e data/go; do sleep 0.1; done; echo lock >>data/log", "")
	s := w.take()
	require.True(t, w.Eventually(func() bool { return w.sh("db-0", "cat data/log || true") == "begin" }))
	require.NoError(t, w.Client.Delete(t.Context(), s))
	hub.Await(w.World, s, "not releasing", func(s *v1alpha1.ApplicationSnapshot) bool { return s.Status.Phase == v1alpha1.SnapshotReleasing })
	w.sh("db-0", "touch data/go")
	w.AwaitGone(s, s.Name)
	assert.Equal(t, "begin lock unlock", w.sh("db-0", "cat data/log"))
}
