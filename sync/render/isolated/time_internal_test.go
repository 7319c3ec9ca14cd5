package isolated

import (
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/sync/render"
)

// The author of a GitSync says how long its kustomization may take, but not that it may take the turns of
// others for ever.
func TestBuilder_endsABuildThatTakesLong(t *testing.T) {
	b := NewBuilder(Options{Time: time.Second})
	for own, limit := range map[time.Duration]string{1000 * time.Hour: "1s", 500 * time.Millisecond: "500ms"} {
		_, _, err := b.Build(render.On(t.Context(), render.Terms{For: "a", Time: own}), endless(), ".")
		require.ErrorContains(t, err, "the build takes longer than it may ("+limit+")")
	}
	b.time = DefaultTime // a new process may take more than a second on a busy machine
	objects, _, err := b.Build(t.Context(), fstest.MapFS{"kustomization.yaml": {Data: []byte("configMapGenerator: [{name: a}]")}}, ".")
	require.NoError(t, err)
	assert.Len(t, objects, 1)
}
