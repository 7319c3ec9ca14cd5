package apply_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/test/env"
)

// newGated applies through a gate that can be shut.
func newGated(t *testing.T) (*fixture, *env.Gate) {
	t.Helper()
	return newGatedAs(t, shared(t).RESTConfig())
}

// newGatedAs applies through a gate with the rights of a configuration.
func newGatedAs(t *testing.T, config *rest.Config) (*fixture, *env.Gate) {
	t.Helper()
	cluster := shared(t)
	gate, err := env.NewGate(cluster.Address())
	require.NoError(t, err)
	t.Cleanup(gate.Close)
	return newFixtureAs(t, cluster, env.Via(gate, config)), gate
}

// A server that is gone and comes back costs nothing but the time in between, and
// what happened meanwhile is noticed.
func TestFailure_connectionLost(t *testing.T) {
	f, gate := newGated(t)
	objects := configMaps(t, 20)
	first := f.mustApply(nil, objects...)
	gate.Shut()
	lost := f.Apply(t.Context(), f.request(first.Inventory, append(objects, configMap(t, "more", "one"))...))
	require.Error(t, lost.Err)
	assert.Empty(t, lost.Problems, "it is not a matter of single objects")
	assert.Len(t, lost.Inventory, 21, "what may be there is remembered")
	again := f.Apply(t.Context(), f.request(first.Inventory, append(objects, configMap(t, "more", "one"))...))
	require.Error(t, again.Err)

	f.edit("configmaps", "settings-003", `{"data":{"key":"edited"}}`)
	f.delete("configmaps", "settings-004")
	require.NoError(t, gate.Open())
	f.awaitNotice()
	f.requests.take()
	var repaired []apply.Change
	f.until(f.request(first.Inventory, objects...), func(r apply.Result) bool { // either may be noticed first
		repaired = append(repaired, r.Changes...)
		return len(repaired) == 2
	})
	assert.Len(t, f.requests.take(), 2, "nothing else is applied again")
}

func TestFailure_messageIsStable(t *testing.T) {
	f, gate := newGated(t)
	gate.Shut()
	first := f.apply(nil, configMaps(t, 30)...)
	second := f.apply(nil, configMaps(t, 30)...)
	require.Error(t, first.Err)
	assert.Equal(t, first.Err.Error(), second.Err.Error())
	assert.Equal(t, "API server "+gate.Address()+": connect: connection refused", first.Err.Error())
}

// A server that accepts and never answers ends with the time that is given.
func TestFailure_hanging(t *testing.T) {
	f, gate := newGated(t)
	objects := configMaps(t, 20)
	first := f.mustApply(nil, objects...)
	require.NoError(t, gate.Hang())
	objects[3] = configMap(t, "settings-003", "two")
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	result := f.Apply(ctx, f.request(first.Inventory, objects...))
	require.ErrorIs(t, result.Err, context.DeadlineExceeded)
	assert.Equal(t, "API server: no answer in time", result.Err.Error())
	assert.Equal(t, first.Inventory, result.Inventory)

	f.target = newTarget(t, env.Via(gate, f.cluster.RESTConfig()))
	f.restart()
	ctx, cancel = context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, f.Apply(ctx, f.request(first.Inventory, objects...)).Err, context.DeadlineExceeded, "also before the first contact")
	left := f.Delete(ctx, f.owner, first.Inventory)
	require.Error(t, left.Err)
	assert.Equal(t, first.Inventory, left.Inventory)

	require.NoError(t, gate.Open())
	f.until(f.request(first.Inventory, objects...), clean)
	assert.Equal(t, "two", f.value("settings-003"))
}

func TestFailure_applierEnded(t *testing.T) {
	f := newFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := apply.New(ctx, f.target, apply.Options{})
	cancel()
	result := ended.Apply(t.Context(), f.request(nil, configMap(t, "a", "one")))
	require.ErrorIs(t, result.Err, context.Canceled)
	assert.Nil(t, f.live("configmaps", "a"))
}

// The real thing: kube-apiserver is killed, and started again.
func TestFailure_serverRestarted(t *testing.T) {
	cluster := env.Start(t, env.Options{Name: "restarted"})
	f := newFixtureAs(t, cluster, cluster.RESTConfig())
	objects := configMaps(t, 20)
	first := f.mustApply(nil, objects...)
	require.NoError(t, cluster.KillAPIServer())
	require.Error(t, f.apply(first.Inventory, configMap(t, "more", "one")).Err)
	require.NoError(t, cluster.StartAPIServer(t.Context()))

	require.Eventually(t, func() bool { return clean(f.apply(first.Inventory, objects...)) }, patience, often)
	f.requests.take()
	f.mustApply(first.Inventory, objects...)
	assert.Empty(t, f.requests.take())
	f.edit("configmaps", "settings-003", `{"data":{"key":"edited"}}`)
	f.awaitNotice()
	assert.Len(t, f.mustApply(first.Inventory, objects...).Changes, 1)
}
