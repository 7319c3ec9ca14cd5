package applicationinstallation_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

// away is the name of a cluster that is driven with a kubeconfig.
var away = types.NamespacedName{Namespace: hub.SystemNamespace, Name: "away"}

// newAway returns a world of a cluster of its own, which is not driven yet, and the process that would.
func newAway(t *testing.T) (*world, *hub.Process) {
	t.Helper()
	c := ownCluster(t, "away")
	process := hub.Start(t, c, drive)
	t.Cleanup(process.Stop)
	return &world{World: hub.NewWorld(t, c), repo: newChartRepo(t)}, process
}

// defineWaiting defines the chart `web` with deploy options that wait for health, and are the hub's.
func (w *world) defineWaiting(timeout time.Duration) *v1alpha1.ApplicationDefinition {
	w.T.Helper()
	return w.define(func(d *v1alpha1.ApplicationDefinitionSpec) { d.DefaultDeployOptions = waiting(timeout, true) })
}

// K47, P13: what became healthy while the hub had lost the cluster stays, though its time was over before
// the cluster was back.
func TestInstallation_isNotGivenUpBecauseItsClusterWasLost(t *testing.T) {
	t.Parallel()
	w, process := newAway(t)
	user, err := w.Cluster.AddUser(hub.Identity, "system:masters")
	require.NoError(t, err)
	gate, err := env.NewGate(w.Cluster.Address())
	require.NoError(t, err)
	t.Cleanup(gate.Close)
	process.Clusters.Ensure(away, "a", env.Via(gate, user))
	definition := w.defineWaiting(time.Hour)
	replicas := func(n int) func(*v1alpha1.ApplicationInstallationSpec) {
		return func(s *v1alpha1.ApplicationInstallationSpec) {
			s.Values = values(t, map[string]any{"replicas": n, "hook": map[string]any{"enabled": false}})
		}
	}
	inst := hub.AwaitReady(w.World, w.install(replicas(1)))
	allow := w.noPods()
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { replicas(2)(&i.Spec) })
	w.awaitAwaited(inst, 2)

	gate.Shut()
	require.True(t, w.Eventually(func() bool { _, err := process.Clusters.Get(away); return err != nil }), "the cluster is not lost")
	allow()
	require.True(t, w.Eventually(func() bool { return w.deployment("web").Status.AvailableReplicas == 2 }), "it is not healthy")
	hub.Change(w.World, definition, func(d *v1alpha1.ApplicationDefinition) { d.Spec.DefaultDeployOptions = waiting(short, true) })
	w.AwaitSeen(process, definition)
	over := inst.Status.HealthAwaitedSince.Add(short + time.Second)
	require.True(t, w.Eventually(func() bool { return time.Now().After(over) }), "its time is not over")

	require.NoError(t, gate.Open())
	process.Clusters.Probe(away)
	hub.Await(w.World, inst, "it is not healthy", func(i *v1alpha1.ApplicationInstallation) bool { return i.Status.HealthAwaitedSince == nil })
	hub.AwaitReady(w.World, inst)
	assert.EqualValues(t, 2, inst.Status.Release.Revision)
	assert.Equal(t, "deployed", inst.Status.Release.Status)
	assert.Empty(t, inst.Status.GivenUp)
	assert.Len(t, w.releases("web"), 2)
}

// K47: what no watch shows to be healthy is looked at before it is given up.
func TestInstallation_isNotGivenUpBecauseItIsNotWatched(t *testing.T) {
	t.Parallel()
	w, process := newAway(t)
	const user = "blinkered"
	config, err := w.Cluster.AddUser(user)
	require.NoError(t, err)
	all := []string{"*"}
	w.grant(user, "all-but-deployments", rbacv1.PolicyRule{APIGroups: []string{"", "batch", "events.k8s.io", v1alpha1.Group}, Resources: all, Verbs: all},
		rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get", "create", "update", "patch", "delete"}})
	process.Clusters.Ensure(away, "a", config)
	definition := w.defineWaiting(time.Hour)
	inst := w.install(nil)
	w.awaitAwaited(inst, 1)
	require.True(t, w.Eventually(func() bool { return w.deployment("web").Status.AvailableReplicas > 0 }), "it is not healthy")
	hub.Change(w.World, definition, func(d *v1alpha1.ApplicationDefinition) { d.Spec.DefaultDeployOptions = waiting(short, true) })
	hub.Await(w.World, inst, "it is awaited for ever", func(i *v1alpha1.ApplicationInstallation) bool { return i.Status.HealthAwaitedSince == nil })
	require.NotNil(t, inst.Status.Release, "it was uninstalled")
	assert.Equal(t, "deployed", inst.Status.Release.Status)
	assert.Empty(t, inst.Status.GivenUp)
}
