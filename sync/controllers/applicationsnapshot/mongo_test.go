package applicationsnapshot_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

const examples = "../../../examples/data/"

// example reads the object of a kind and name from a file of examples.
func example(t *testing.T, file, kind, name string, into any) {
	t.Helper()
	content, err := os.ReadFile(examples + file)
	require.NoError(t, err)
	for document := range bytes.SplitSeq(content, []byte("\n---\n")) {
		head := struct {
			Kind     string
			Metadata struct{ Name string }
		}{}
		require.NoError(t, yaml.Unmarshal(document, &head))
		if head.Kind == kind && head.Metadata.Name == name {
			require.NoError(t, yaml.UnmarshalStrict(document, into))
			return
		}
	}
	require.Failf(t, "no such example", "%s %s in %s", kind, name, file)
}

// S66: the example with MongoDB locks the database before the cut, and unlocks it after. The script of its
// stand-in takes the place of `mongo`.
func TestSnapshot_ofTheExampleWithMongoDB(t *testing.T) {
	script, bin := &corev1.ConfigMap{}, t.TempDir()
	example(t, "mongo-stand-in.yaml", "ConfigMap", "mongo-stand-in", script)
	require.NoError(t, os.WriteFile(filepath.Join(bin, "mongo"), []byte(strings.ReplaceAll(script.Data["mongo"], "/data/db", "data")), 0o700)) //nolint:gosec // it runs
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	w := newWorld(t)
	w.application("data")
	class := &v1alpha1.ApplicationSnapshotClass{}
	example(t, "mongo.yaml", "ApplicationSnapshotClass", "mongo-class", class)
	for _, hook := range append(class.PreHooks, class.PostHooks...) {
		action := &v1alpha1.HookAction{}
		example(t, "mongo.yaml", "HookAction", hook.ActionName, action)
		action.Namespace = w.Namespace
		w.Create(action)
	}
	w.class.PreHooks, w.class.PostHooks = class.PreHooks, class.PostHooks
	s := hub.AwaitReady(w.World, w.take())
	assert.Equal(t, v1alpha1.ConsistencyApplication, s.Status.Consistency)
	assert.Equal(t, "locked", w.read(w.content(s), "data-db-0", "ls"), "it was locked when it was cut")
	assert.Empty(t, w.sh("db-0", "ls data"), "and is not any more")
}
