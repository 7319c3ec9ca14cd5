package applicationsnapshot_test

import (
	"testing"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env/volumes"
)

// S37, S51, S53, S55, S56, S59, S62, S63, S64: what cannot succeed fails at once, before a hook runs.
func TestSnapshot_failsBeforeTheFirstHook(t *testing.T) {
	hook := func(name string, edit func(*v1alpha1.HookSpec)) v1alpha1.HookSpec {
		h := v1alpha1.HookSpec{Name: name, ActionName: "lock"}
		edit(&h)
		return h
	}
	for name, test := range map[string]struct {
		reason, message string
		claims          []string
		before          func(w *world)
		edit            func(s *v1alpha1.ApplicationSnapshot)
	}{
		"no class": {
			reason: v1alpha1.ClassNotFoundReason, message: `ApplicationSnapshotClass "none" does not exist`,
			edit: func(s *v1alpha1.ApplicationSnapshot) { s.Spec.SnapshotClassName = "none" },
		},
		"no StatefulApplication": {
			reason: v1alpha1.ApplicationNotFoundReason, message: `StatefulApplication "web" does not exist`,
			edit: func(s *v1alpha1.ApplicationSnapshot) { s.Spec.Source.ApplicationName = "web" },
		},
		"no Application": {
			reason: v1alpha1.ApplicationNotFoundReason, message: `"web" not found`,
			before: func(w *world) {
				w.Create(&v1alpha1.StatefulApplication{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: v1alpha1.StatefulApplicationSpec{ApplicationName: "web"}})
			},
			edit: func(s *v1alpha1.ApplicationSnapshot) { s.Spec.Source.ApplicationName = "web" },
		},
		"a claim that is not bound": {
			reason: v1alpha1.VolumeNotSupportedReason, message: `PersistentVolumeClaim "late" is not bound`,
			before: func(w *world) {
				w.Create(volumes.Claim(w.Namespace, "late", "none"))
				w.podOfApplication("waits", "late")
			},
		},
		"a claim without a driver of snapshots": {
			reason: v1alpha1.VolumeNotSupportedReason, message: `PersistentVolumeClaim "plain" has a volume without a CSI driver`,
			before: func(w *world) {
				claim := volumes.Claim(w.Namespace, "plain", "")
				claim.Spec.StorageClassName = nil
				w.Create(claim)
				w.podOfApplication("uses", "plain")
				w.awaitRunning("uses")
			},
		},
		"no VolumeSnapshotClass": {
			claims: []string{"data"}, reason: v1alpha1.VolumeNotSupportedReason,
			message: `VolumeSnapshotClass "none", which ApplicationSnapshotClass`,
			before:  func(w *world) { w.class.VolumeSnapshotClassNames = map[string]string{volumes.ImmediateClass: "none"} },
		},
		"a VolumeSnapshotClass of another driver": {
			claims: []string{"data"}, reason: v1alpha1.VolumeNotSupportedReason, message: `is of driver "other.example.com"`,
			before: func(w *world) {
				require.NoError(w.T, w.direct.Create(w.T.Context(), &snapshotv1.VolumeSnapshotClass{
					ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}, Driver: "other.example.com", DeletionPolicy: snapshotv1.VolumeSnapshotContentDelete,
				}))
				w.class.VolumeSnapshotClassNames = map[string]string{volumes.ImmediateClass: w.Namespace}
			},
		},
		"no VolumeGroupSnapshotClass": {
			claims: []string{"data"}, reason: v1alpha1.VolumeNotSupportedReason, message: `VolumeGroupSnapshotClass "none" does not exist`,
			before: func(w *world) { w.class.VolumeGroupSnapshotClassNames = map[string]string{driver: "none"} },
		},
		"no HookAction": {
			reason: v1alpha1.HookActionNotFoundReason, message: `HookAction "none" of post-hook "unlock" does not exist`,
			before: func(w *world) { w.class.PostHooks[0].ActionName = "none" },
		},
		"a hook without a Pod": {
			reason: v1alpha1.HookTargetInvalidReason, message: `pre-hook "lock" of ApplicationSnapshotClass`,
			before: func(w *world) {
				w.class.PreHooks[0].PodFilter = &metav1.LabelSelector{MatchLabels: map[string]string{"role": "leader"}}
			},
		},
		"a hook without a container": {
			reason: v1alpha1.HookTargetInvalidReason, message: `selects no running container of the application`,
			before: func(w *world) { w.class.PreHooks[0].Container = "metrics" },
		},
		"two hooks in one container": {
			reason: v1alpha1.HookTargetInvalidReason, message: `both select container "main" of Pod "db-0"`,
			before: func(w *world) {
				w.class.PreHooks = append(w.class.PreHooks, hook("again", func(h *v1alpha1.HookSpec) { h.Container = "main" }))
			},
		},
		"a Pod that scaling does not end": {
			claims: []string{"data"}, reason: v1alpha1.NotQuiescedReason, message: `Pods stray use claims of the application`,
			before: func(w *world) {
				w.class.PreHooks, w.class.PostHooks, w.class.Quiesce = nil, nil, v1alpha1.QuiesceScaleDown
				w.Create(volumes.Pod(w.Namespace, "stray", "data-db-0"))
				w.awaitRunning("stray")
			},
		},
		"a StatefulSet whose claims go with its Pods": {
			claims: []string{"data"}, reason: v1alpha1.NotQuiescedReason,
			message: `StatefulSet "db" cannot be scaled to zero, because its claims are deleted with its Pods: set spec.persistentVolumeClaimRetentionPolicy.whenScaled to Retain`,
			before: func(w *world) {
				w.class.PreHooks, w.class.PostHooks, w.class.Quiesce = nil, nil, v1alpha1.QuiesceScaleDown
				w.deleteClaimsWithPods()
			},
		},
		"a content of that name": {
			reason: v1alpha1.ContentConflictReason, message: `already exists: choose another spec.snapshotContentName`,
			before: func(w *world) {
				w.Create(&v1alpha1.ApplicationSnapshotContent{
					ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}, Spec: v1alpha1.ApplicationSnapshotContentSpec{SnapshotClassName: "none"},
				})
			},
			edit: func(s *v1alpha1.ApplicationSnapshot) { s.Spec.SnapshotContentName = s.Namespace },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.application(test.claims...)
			if test.before != nil {
				test.before(w)
			}
			s := w.take(func(s *v1alpha1.ApplicationSnapshot) {
				s.Namespace = w.Namespace
				if test.edit != nil {
					test.edit(s)
				}
			})
			failure := w.awaitFailed(s)
			assert.Equal(t, test.reason, failure.Reason)
			assert.Contains(t, failure.Message, test.message)
			assert.Zero(t, w.hooks())
			assert.Empty(t, w.volumeSnapshots())
			assert.Zero(t, w.stored(s))
			assert.Empty(t, s.Status.Scaled)
			require.NoError(t, w.Client.Delete(t.Context(), s))
			w.AwaitGone(s, s.Name)
		})
	}
}

// podOfApplication creates a Pod that is a component of the application.
func (w *world) podOfApplication(name string, claims ...string) {
	w.T.Helper()
	a := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "db"}}
	require.NoError(w.T, w.Client.Get(w.T.Context(), client.ObjectKeyFromObject(a), a))
	a.Spec.Components = append(a.Spec.Components, v1alpha1.ApplicationComponent{Kind: "Pod"})
	require.NoError(w.T, w.Client.Update(w.T.Context(), a))
	pod := volumes.Pod(w.Namespace, name, claims...)
	pod.Labels = map[string]string{"app": "db", "pod": "single"}
	w.Create(pod)
}

// deleteClaimsWithPods has the StatefulSet delete its claims when it is scaled down.
func (w *world) deleteClaimsWithPods() {
	w.T.Helper()
	set := w.set()
	set.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
		WhenScaled: appsv1.DeletePersistentVolumeClaimRetentionPolicyType, WhenDeleted: appsv1.RetainPersistentVolumeClaimRetentionPolicyType,
	}
	require.NoError(w.T, w.Client.Update(w.T.Context(), set))
}
