package cluster

import (
	"errors"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
)

// weight is how much is taken of a pool.
func (p *pool) weight() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sum
}

// Many clusters that each keep to the limits of one are not more than the hub holds: the one of which most is
// kept is disconnected, and the others do not notice.
func TestKept_boundsAllClustersTogether(t *testing.T) {
	known, err := newKinds(nil)
	require.NoError(t, err)
	kept := newKept(6 << 20)
	r := NewRegistry(&Cluster{kinds: known, views: newViews()}, Options{kept: kept, ExcludeFor: time.Hour})
	t.Cleanup(r.Close)
	const size = 256 << 10
	text := strings.Repeat("a", size)
	watched := map[string]metadata.ResourceInterface{}
	keep := func(name string, objects int) {
		key := types.NamespacedName{Name: name}
		r.Ensure(key, "a", newHostile(t, map[string]http.HandlerFunc{configMapPath: events(metadataKind, objects, text)}).config())
		var c *Cluster
		require.Eventually(t, func() bool {
			c, err = r.Get(key)
			return err == nil
		}, time.Minute, 5*time.Millisecond)
		watched[name] = c.Metadata().Resource(configMaps)
		w, err := watched[name].Watch(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		t.Cleanup(w.Stop)
		for range objects {
			<-w.ResultChan()
		}
	}
	lost := func(name string) error {
		_, err := r.Get(types.NamespacedName{Name: name})
		return err
	}
	keep("small", 4)
	keep("large", 12)
	require.NoError(t, errors.Join(lost("small"), lost("large")))
	keep("other", 10)
	require.Eventually(t, func() bool { return lost("large") != nil }, time.Minute, 5*time.Millisecond)
	var unreachable *UnreachableError
	require.ErrorAs(t, lost("large"), &unreachable)
	require.NotNil(t, unreachable.Limit)
	assert.Equal(t, "the size of what is kept of all clusters, most of it of this one, exceeds the limit of 6 MiB", unreachable.Reason)
	require.NoError(t, errors.Join(lost("small"), lost("other")))
	state, _ := r.State(types.NamespacedName{Name: "large"})
	assert.False(t, state.Engaged, "what was kept of it is not")

	keep("more", 8)
	require.NoError(t, errors.Join(lost("small"), lost("other"), lost("more")), "there is room for others")
	r.Remove(types.NamespacedName{Name: "more"})
	require.Eventually(t, func() bool { return kept.weight() < 15*size }, time.Minute, 5*time.Millisecond, "what is removed does not count")
	assert.Greater(t, kept.weight(), int64(14*size))
	runtime.KeepAlive(watched)
}

// What is discovered of a cluster counts as long as the cluster is engaged.
func TestKept_countsDiscovery(t *testing.T) {
	kept := newKept(1 << 40)
	in := newIntake(nil, "", Options{limits: defaultLimits(), underWay: newUnderWay(), kept: kept}, func(error) {})
	in.discover("/apis", 100)
	in.discover("/apis", 150)
	in.discover("/api", 50)
	assert.EqualValues(t, 200, kept.weight())
	in.forget(false)
	assert.Zero(t, kept.weight())
	in.discover("/api", 50)
	in.forget(true)
	in.discover("/api", 50)
	assert.Zero(t, kept.weight(), "an answer that ends late does not count for ever")
}
