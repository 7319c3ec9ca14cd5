package applicationinstallation_test

import (
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

// noPods makes whatever needs Pods in the test's namespace unhealthy, and returns what undoes that.
func (w *world) noPods() func() {
	w.T.Helper()
	quota := &corev1.ResourceQuota{ObjectMeta: objectMeta("none"), Spec: corev1.ResourceQuotaSpec{
		Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")},
	}}
	w.Create(quota)
	w.AwaitPodRefused("exceeded quota: none")
	require.NoError(w.T, w.Client.DeleteAllOf(w.T.Context(), &corev1.Pod{}, client.InNamespace(w.Namespace), client.GracePeriodSeconds(0)))
	return func() {
		w.T.Helper()
		require.NoError(w.T, w.Client.Delete(w.T.Context(), quota))
	}
}

// waiting returns deploy options that wait for health.
func waiting(timeout time.Duration, atomic bool) *v1alpha1.DeployOptions {
	return &v1alpha1.DeployOptions{Helm: &v1alpha1.HelmDeployOptions{Wait: true, Atomic: atomic, Timeout: metav1.Duration{Duration: timeout}}}
}

// short is a time that is over soon, but not before an action has ended on a busy machine: it is the
// limit of that, too.
const short = 10 * time.Second

// awaitAwaited waits until that revision, or one that tries again what it was, is installed and not
// healthy: it has all the time that it needs for the first, and that for the second can be made short.
func (w *world) awaitAwaited(inst *v1alpha1.ApplicationInstallation, revision int32) {
	w.T.Helper()
	hub.Await(w.World, inst, "it is installed, and not healthy", func(i *v1alpha1.ApplicationInstallation) bool {
		return i.Status.Release != nil && i.Status.Release.Revision >= revision && i.Status.HealthAwaitedSince != nil
	})
}

// engageAnew makes the controller forget what it knew, as a restart does.
func engageAnew() {
	shared.process.Clusters.Ensure(local, "engagement "+strconv.FormatInt(engagements.Add(1), 10), nil)
}

var (
	// local is the name of the cluster of all tests.
	local = types.NamespacedName{Namespace: hub.SystemNamespace, Name: "local"}
	// engagements counts those of the cluster: one with the same hash is no other.
	engagements atomic.Int64
)

// K47: wait and atomic are about an install or upgrade. What has been healthy once is never rolled
// back or uninstalled for not being so later, whether or not Waybill was restarted in between.
func TestInstallation_isNotGivenUpOnceItWasHealthy(t *testing.T) {
	w := newWorld(t)
	w.define(nil)
	inst := hub.AwaitReady(w.World, w.install(func(s *v1alpha1.ApplicationInstallationSpec) {
		s.Values = values(t, map[string]any{"replicas": 1, "hook": map[string]any{"enabled": false}})
		s.DeployOptions = waiting(hub.Limit, true)
	}))
	assert.Nil(t, inst.Status.HealthAwaitedSince)
	before := w.deployment("web").UID
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { i.Spec.DeployOptions = waiting(short, true) })
	hub.AwaitReady(w.World, inst)

	allow := w.noPods()
	hub.AwaitReason(w.World, inst, v1alpha1.ProgressingReason)
	engageAnew()
	w.settle(inst) // by the new engagement: what the old one has begun is not for this test
	other := &v1alpha1.ApplicationInstallation{ObjectMeta: objectMeta("other"), Spec: *inst.Spec.DeepCopy()}
	other.Spec.DeployOptions = waiting(time.Hour, false)
	w.Create(other)
	w.awaitAwaited(other, 1)
	hub.Change(w.World, other, func(i *v1alpha1.ApplicationInstallation) { i.Spec.DeployOptions = waiting(short, false) })
	hub.AwaitReason(w.World, other, v1alpha1.NotHealthyReason)
	require.NotNil(t, other.Status.HealthAwaitedSince, "this one was never healthy")

	allow()
	hub.AwaitReady(w.World, inst)
	assert.EqualValues(t, 1, inst.Status.Release.Revision)
	assert.Equal(t, "deployed", inst.Status.Release.Status)
	assert.Equal(t, before, w.deployment("web").UID)
	hub.AwaitReady(w.World, other)
	assert.Nil(t, other.Status.HealthAwaitedSince)
}

// K47: the time of what was never healthy goes on across a restart.
func TestInstallation_isGivenUpAfterARestartIfItWasNeverHealthy(t *testing.T) {
	w := newWorld(t)
	w.define(nil)
	inst := hub.AwaitReady(w.World, w.install(func(s *v1alpha1.ApplicationInstallationSpec) {
		s.Values = values(t, map[string]any{"replicas": 1, "hook": map[string]any{"enabled": false}})
	}))
	w.noPods()
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) {
		i.Spec.Values = values(t, map[string]any{"replicas": 2, "hook": map[string]any{"enabled": false}})
		i.Spec.DeployOptions = waiting(time.Hour, true)
	})
	w.awaitAwaited(inst, 2)
	engageAnew()
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { i.Spec.DeployOptions = waiting(short, true) })
	assert.Contains(t, hub.AwaitReason(w.World, inst, v1alpha1.NotHealthyReason), "rolled back: after 10s")
	assert.True(t, conditions.IsStalled(inst))
	rolledBack := inst.Status.Release.Revision
	assert.EqualValues(t, 1, *w.deployment("web").Spec.Replicas)
	history := inst.Status.History
	require.Equal(t, []v1alpha1.InstallationOutcome{v1alpha1.InstallationRolledBack, v1alpha1.InstallationFailed, v1alpha1.InstallationDeployed}, outcomes(inst))
	assert.Equal(t, rolledBack, history[0].Revision)
	assert.Equal(t, history[2].ValuesDigest, history[0].ValuesDigest, "it is what it returned to")
	assert.NotEqual(t, history[1].ValuesDigest, history[0].ValuesDigest)
	assert.Contains(t, history[1].Message, "rolled back: after 10s")

	// It stays given up when Waybill is restarted, and what it was rolled back to is kept.
	message := conditions.GetMessage(inst, v1alpha1.ReadyCondition)
	engageAnew()
	w.settle(inst)
	w.awaitBack()
	w.settle(inst)
	assert.Equal(t, message, conditions.GetMessage(inst, v1alpha1.ReadyCondition))
	assert.True(t, conditions.IsStalled(inst))
	assert.Equal(t, rolledBack, inst.Status.Release.Revision)
	assert.Equal(t, history, inst.Status.History)

	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { metaAnnotate(i, v1alpha1.ReconcileAtAnnotation, "again") })
	hub.Await(w.World, inst, "it is tried again for who asks", func(i *v1alpha1.ApplicationInstallation) bool { return i.Status.Release.Revision > rolledBack })
}

// K47: after a restart, what was never healthy is given up once it is known what that is, so that it is
// not installed again.
func TestInstallation_isGivenUpForGoodAlthoughItsValuesWereMissing(t *testing.T) {
	w := newWorld(t)
	w.define(nil)
	inst := hub.AwaitReady(w.World, w.install(func(s *v1alpha1.ApplicationInstallationSpec) {
		s.Values = values(t, map[string]any{"replicas": 1, "hook": map[string]any{"enabled": false}})
	}))
	w.noPods()
	more := func() *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: protectedMeta("more"), Data: map[string]string{"values.yaml": "page: {title: more}"}}
	}
	w.Create(more())
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) {
		i.Spec.ValuesFrom = []v1alpha1.ValuesReference{{Kind: "ConfigMap", Name: "more"}}
		i.Spec.DeployOptions = waiting(time.Hour, true)
	})
	w.awaitAwaited(inst, 2)
	require.NoError(t, w.Client.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "more"}}))
	hub.AwaitReason(w.World, inst, v1alpha1.InvalidValuesReason)
	engageAnew()
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { i.Spec.DeployOptions = waiting(short, true) })
	hub.Await(w.World, inst, "both are said", func(i *v1alpha1.ApplicationInstallation) bool {
		return strings.Contains(conditions.GetMessage(i, v1alpha1.ReadyCondition), "; what is installed: after 10s")
	})
	upgraded := inst.Status.Release.Revision

	w.Create(more())
	hub.Await(w.World, inst, "it is rolled back, and given up for good", func(i *v1alpha1.ApplicationInstallation) bool {
		return strings.Contains(conditions.GetMessage(i, v1alpha1.ReadyCondition), "rolled back: after 10s") && i.Status.GivenUp != ""
	})
	rolledBack := inst.Status.Release.Revision
	assert.Greater(t, rolledBack, upgraded)
	w.settle(inst)
	assert.Equal(t, rolledBack, inst.Status.Release.Revision)
}

// K47: a first install that never became healthy is uninstalled, once, and that is said.
func TestInstallation_isUninstalledIfItsFirstInstallIsNeverHealthy(t *testing.T) {
	w := newWorld(t)
	w.noPods()
	w.define(nil)
	inst := w.install(func(s *v1alpha1.ApplicationInstallationSpec) {
		s.Values = values(t, map[string]any{"hook": map[string]any{"enabled": false}})
		s.DeployOptions = waiting(time.Hour, true)
	})
	w.awaitAwaited(inst, 1)
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { i.Spec.DeployOptions = waiting(short, true) })
	assert.Contains(t, hub.AwaitReason(w.World, inst, v1alpha1.NotHealthyReason), "uninstalled: after 10s")
	assert.True(t, conditions.IsStalled(inst))
	assert.Nil(t, inst.Status.Release)
	assert.False(t, w.Exists(&v1alpha1.Application{}, "web"))

	engageAnew()
	w.settle(inst)
	assert.True(t, conditions.IsStalled(inst))
	assert.Nil(t, inst.Status.Release)
	assert.Empty(t, w.releases("web"))

	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) {
		i.Spec.Values = values(t, map[string]any{"replicas": 0, "hook": map[string]any{"enabled": false}})
	})
	hub.AwaitReady(w.World, inst)
	assert.Empty(t, inst.Status.GivenUp)
}

// K47: what is about to be replaced is not given up, even if its time is over.
func TestInstallation_isNotGivenUpForWhatReplacesIt(t *testing.T) {
	w := newWorld(t)
	w.noPods()
	w.define(nil)
	inst := w.install(func(s *v1alpha1.ApplicationInstallationSpec) {
		s.Values = values(t, map[string]any{"hook": map[string]any{"enabled": false}})
		s.DeployOptions = waiting(time.Hour, false)
	})
	w.awaitAwaited(inst, 1)
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { i.Spec.DeployOptions = waiting(short, false) })
	hub.AwaitReason(w.World, inst, v1alpha1.NotHealthyReason)
	before := w.deployment("web").UID
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) {
		i.Spec.Values = values(t, map[string]any{"replicas": 0, "hook": map[string]any{"enabled": false}})
		i.Spec.DeployOptions = waiting(short, true)
	})
	hub.AwaitReady(w.World, inst)
	assert.Equal(t, before, w.deployment("web").UID)
}

// The time of a kustomization is in the status before anything is applied: who dies meanwhile does
// not lose it.
func TestInstallation_ofAKustomizationIsAwaitedFromItsIntent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.kustomizations(keyed("one"))
	held := w.admission("cm")
	inst := w.install(func(s *v1alpha1.ApplicationInstallationSpec) { s.DeployOptions = waiting(time.Hour, false) })
	env.Receive(t, held.asked, "the ConfigMap is not made")
	require.NoError(t, w.Client.Get(t.Context(), client.ObjectKeyFromObject(inst), inst))
	assert.NotNil(t, inst.Status.HealthAwaitedSince)
	held.release()
	hub.AwaitReady(w.World, inst)
	assert.Nil(t, inst.Status.HealthAwaitedSince)
}
