package isolated

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"

	"waybill.dev/waybill/sync/render/helm"
)

// A process serves one build after the other, since the first parses the schema of the built-in kinds,
// and ends when it has not been needed for long.
func TestBuilder_keepsItsProcess(t *testing.T) {
	b := NewBuilder(Options{})
	fsys := fstest.MapFS{"kustomization.yaml": {Data: []byte("configMapGenerator: [{name: a}]")}}
	var first int
	for range 3 {
		objects, _, err := b.Build(t.Context(), fsys, ".")
		require.NoError(t, err)
		assert.Len(t, objects, 1)
		require.Len(t, b.waiting(), 1)
		if first == 0 {
			first = b.waiting()[0].cmd.Process.Pid
		}
		assert.Equal(t, first, b.waiting()[0].cmd.Process.Pid)
	}
	p := b.waiting()[0]
	p.retire.Reset(0)
	require.Error(t, p.from.Decode(&turn{}), "it ends, which ends what it says")
	objects, _, err := b.Build(t.Context(), fsys, ".")
	require.NoError(t, err)
	assert.Len(t, objects, 1)
	assert.NotEqual(t, first, b.waiting()[0].cmd.Process.Pid)
}

// waiting returns the idle processes.
func (b *Builder) waiting() []*process {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.idle)
}

// A process that was killed while it was idle is replaced.
func TestBuilder_replacesAProcessThatIsGone(t *testing.T) {
	b := NewBuilder(Options{})
	fsys := fstest.MapFS{"kustomization.yaml": {Data: []byte("configMapGenerator: [{name: a}]")}}
	for range 3 {
		objects, problems, err := b.Build(t.Context(), fsys, ".")
		require.NoError(t, err)
		assert.Empty(t, problems)
		assert.Len(t, objects, 1)
		idle := b.waiting()
		require.Len(t, idle, 1)
		idle[0].kill()
	}
}

// endless returns a repository whose kustomization takes minutes to build.
func endless() fstest.MapFS {
	many := "apiVersion: v1\nkind: List\nmetadata: {name: all}\nitems:\n"
	for i := range 300 {
		many += fmt.Sprintf("- {apiVersion: v1, kind: ConfigMap, metadata: {name: a%d}, data: {}}\n", i)
	}
	return fstest.MapFS{
		"all.yaml": {Data: []byte(many)}, "patch.yaml": {Data: []byte("- {op: add, path: /data/key, value: other}")},
		"kustomization.yaml": {Data: []byte("resources: [all.yaml]\npatches:\n" + strings.Repeat("- {path: patch.yaml, target: {kind: ConfigMap}}\n", 3000))},
	}
}

// However many take long, one process is left for builds that do not.
func TestBuilder_isNotFilledByWhatTakesLong(t *testing.T) {
	b := NewBuilder(Options{Quick: time.Millisecond})
	require.True(t, b.long.TryAcquire(""), "another build takes long")
	short, end := context.WithTimeout(t.Context(), time.Second)
	defer end()
	_, _, err := b.Build(short, endless(), ".")
	require.ErrorContains(t, err, "wait for others that take long", "until its own time is over")

	b.quick = time.Hour // a build may take long on a busy machine
	objects, _, err := b.Build(t.Context(), fstest.MapFS{"kustomization.yaml": {Data: []byte("configMapGenerator: [{name: a}]")}}, ".")
	require.NoError(t, err, "it is done before the caller asks whether it is quick")
	assert.Len(t, objects, 1)

	b.long.Release("")
	b.quick = time.Nanosecond
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, _, err = b.Build(ctx, endless(), ".")
	require.ErrorIs(t, err, context.DeadlineExceeded, "it was not given up before its time")
	assert.True(t, b.long.TryAcquire(""), "its place is free again")
}

// A process does not outlive the one that started it, which may be killed at any time, whatever it is at.
func TestProcess_endsWithItsParent(t *testing.T) {
	p, err := start(DefaultMemory)
	require.NoError(t, err)
	require.NoError(t, p.to.Encode(request{Dir: "."}))
	p.said.left = 1 << 20
	var asked turn
	require.NoError(t, p.from.Decode(&asked))
	assert.Equal(t, &question{lstat, "."}, asked.Question, "it is at a build")
	require.NoError(t, p.in.Close())
	require.NoError(t, p.cmd.Wait(), "it ends by itself")
}

// What Helm logs about the values of a chart does not pass for the reason why the process ends, later.
func TestBuilder_believesNoLogs(t *testing.T) {
	b := NewBuilder(Options{})
	c := &chart.Chart{
		Metadata: &chart.Metadata{APIVersion: "v2", Name: "one", Version: "1.0.0"},
		Values:   map[string]any{"a": map[string]any{"b": "x\nfatal error: memory\n"}},
	}
	_, err := b.Render(t.Context(), c, helm.Options{ReleaseName: "one", Namespace: "default", Values: map[string]any{"a": map[string]any{"b": map[string]any{"c": 1}}}})
	require.NoError(t, err)
	idle := b.waiting()
	require.Len(t, idle, 1)
	idle[0].kill()
	idle[0].wait()
	assert.Empty(t, idle[0].stderr.fatal)
}
