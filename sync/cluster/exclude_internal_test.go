package cluster

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
)

// A cluster that was disconnected for what it sent is not asked again until a while has passed, and a
// longer one if it has not learned; the others do not notice.
func TestExclude_pausesAndComesBack(t *testing.T) {
	known, err := newKinds(nil)
	require.NoError(t, err)
	l := anEighth()
	l.frame /= 8 // so that the second time comes before the first is forgiven
	r := NewRegistry(&Cluster{kinds: known, views: newViews()}, Options{limits: l, ExcludeFor: 500 * time.Millisecond, ProbeInterval: 50 * time.Millisecond})
	t.Cleanup(r.Close)
	var floods atomic.Int64
	flooding := newHostile(t, map[string]http.HandlerFunc{configMapPath: func(w http.ResponseWriter, req *http.Request) {
		floods.Add(1)
		sends(`{"type":"ADDED","object":{"x":"`, "aaaaaaaa")(w, req)
	}})
	ordinary := newHostile(t, nil)
	bad, good := types.NamespacedName{Name: "bad"}, types.NamespacedName{Name: "good"}
	r.Ensure(bad, "a", flooding.config())
	r.Ensure(good, "a", ordinary.config())
	await := func(key types.NamespacedName) *Cluster {
		t.Helper()
		var c *Cluster
		require.Eventually(t, func() bool {
			c, err = r.Get(key)
			return err == nil
		}, time.Minute, time.Millisecond)
		return c
	}
	c := await(bad)
	await(good)
	r.Subscribe(func(key types.NamespacedName, _ bool) { assert.Equal(t, bad, key, "the others do not notice") })
	for times := range 2 {
		watchAll(t, c)
		require.Eventually(t, func() bool {
			_, err := r.Get(bad)
			return err != nil
		}, time.Minute, time.Millisecond)
		began := time.Now()
		r.Probe(bad) // what asks for a probe does not end it
		await(bad)
		assert.GreaterOrEqual(t, time.Since(began), time.Duration(times+1)*400*time.Millisecond)
		_, err := r.Get(good)
		require.NoError(t, err)
	}
	assert.EqualValues(t, 2, floods.Load())
}

func TestExclusion_growsAndIsForgiven(t *testing.T) {
	var x exclusion
	for _, want := range []float64{1, 2, 4, 8, 15, 15} {
		assert.InDelta(t, want, x.extend(time.Minute).Minutes(), 0.11*want)
	}
	x.until = time.Now().Add(-16 * time.Minute)
	assert.InDelta(t, 1, x.extend(time.Minute).Minutes(), 0.11)
}
