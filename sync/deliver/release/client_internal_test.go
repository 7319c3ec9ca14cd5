package release

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// offering is a cluster that serves ConfigMaps, and is not there.
type offering struct{ nowhere }

// Mapper implements Target.
func (*offering) Mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	return m
}

// Helm builds the manifest of an upgrade twice before it writes it. What has been handed out to be written is not
// handed out again: by then, the live objects are in it.
func TestClient_buildsWhatIsTriedOnce(t *testing.T) {
	const one, other = "{apiVersion: v1, kind: ConfigMap, metadata: {name: one}}", "{apiVersion: v1, kind: ConfigMap, metadata: {name: other}}"
	c, err := newClient(t.Context(), &offering{nowhere{"example.com"}}, Identity{Namespace: "shop", Name: "web"})
	require.NoError(t, err)
	build := func(text string, validate bool) any {
		list, err := c.Build(strings.NewReader(text), validate)
		require.NoError(t, err)
		require.Len(t, list, 1)
		assert.Equal(t, text, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+list[0].Name+"}}")
		return list[0]
	}
	hook := build(other, true)
	assert.NotSame(t, hook, build(other, true), "a hook may run twice")

	c.tries = true
	tried := build(one, true)
	assert.NotSame(t, tried, build(one, false), "an old manifest is not what is written")
	assert.Same(t, tried, build(one, true))
	assert.NotSame(t, tried, build(one, true), "it may have been written")
}
