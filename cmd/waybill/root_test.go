package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/cli"
)

func TestRoot_helpListsEveryVerb(t *testing.T) {
	got := waybillWith(t, "", "--help")
	require.Equal(t, 0, got.code)
	for _, verb := range []string{"get", "tree", "describe", "events", "logs", "validate", "render", "diff", "install", "upgrade", "uninstall", "history", "values", "versions", "catalog", "reconcile", "suspend", "resume", "adopt", "import",
		"snapshot", "restore", "clone", "rollback", "version", "completion"} {
		assert.Regexp(t, `(?m)^  `+verb+` `, got.out)
	}
}

func TestRoot_asPluginOfKubectl(t *testing.T) {
	var out bytes.Buffer
	code := run([]string{"/usr/local/bin/kubectl-waybill", "get", "--help"}, genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out})
	assert.Equal(t, 0, code)
	assert.Contains(t, out.String(), "kubectl waybill get [")
}

// Every verb has an example and says what it does; every flag has a usage.
func TestRoot_verbsAreDocumented(t *testing.T) {
	root := newRoot(cli.NewEnv(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &bytes.Buffer{}, ErrOut: &bytes.Buffer{}}, ""), "waybill")
	for _, verb := range root.Commands() {
		assert.NotEmpty(t, verb.Short, verb.Name())
		if verb.Name() != "completion" && verb.Name() != "help" { // of cobra
			assert.NotEmpty(t, verb.Example, verb.Name())
		}
		if verb.GroupID != "" {
			assert.NotEmpty(t, verb.Long, verb.Name())
		}
	}
}

func TestRoot_wrongUse(t *testing.T) {
	for name, args := range map[string][]string{
		"a verb that is none": {"gett"},
		"a flag that is none": {"get", "--nope"},
	} {
		t.Run(name, func(t *testing.T) {
			got := waybillWith(t, "", args...)
			assert.Equal(t, 2, got.code)
			assert.True(t, strings.HasPrefix(got.errOut, "error: unknown "), got.errOut)
		})
	}
	for reason, args := range map[string][]string{
		"a flag that is none": {"adopt", "--nope"},
		"no argument":         {"adopt"},
	} {
		got := waybillWith(t, "", args...)
		assert.Equal(t, 2, got.code, reason)
		assert.Contains(t, got.errOut, "\nusage: waybill adopt NAME --selector LABELS [--kind KIND...] [flags]\n`waybill adopt --help` explains it\n", reason)
	}
}

func TestVersion(t *testing.T) {
	got := waybillWith(t, "", "version")
	require.Equal(t, 0, got.code)
	assert.Regexp(t, `^waybill \S+.*\napi apps.waybill.dev/v1alpha1, go`, got.out)
	assert.Equal(t, got.out, waybillWith(t, "", "--version").out)
	got = waybillWith(t, "", "version", "-o", "json")
	require.Equal(t, 0, got.code)
	var build struct{ API, Go string }
	require.NoError(t, json.Unmarshal([]byte(got.out), &build))
	assert.Equal(t, "apps.waybill.dev/v1alpha1", build.API)
	got = waybillWith(t, "", "version", "-o", "xml")
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.errOut, "must be one of json, yaml")
}

func TestCompletion_offersKindsAndNames(t *testing.T) {
	cluster, c := hub(t), clientOf(t, hub(t))
	namespace := cluster.Namespace(t)
	create(t, c, gitSync(namespace, "catalog"))
	for typed, want := range map[string]string{"gitsync/": "gitsync/catalog\n", "": "gitsync\n"} {
		for _, verb := range []string{"reconcile", "describe", "events", "logs"} {
			got := waybillWith(t, "", "__complete", "-n", namespace, "--kubeconfig", cluster.KubeconfigFile(), verb, typed)
			assert.Contains(t, got.out, want, "%s: %s", verb, got.errOut)
		}
	}
	berlin := &v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "berlin-" + namespace}}
	berlin.Spec.KubeconfigSecretRef = &v1alpha1.SecretKeyReference{Name: "berlin"}
	create(t, c, berlin)
	for flag, want := range map[string]string{"--cluster": berlin.Name, "-n": namespace, "--system-namespace": namespace} {
		got := waybillWith(t, "", "__complete", "--kubeconfig", cluster.KubeconfigFile(), "get", flag, "")
		assert.Contains(t, got.out, want+"\n", got.errOut)
	}
	for name, want := range map[string]string{"adopt": ":4\n", "import": ":4\n", "validate": ":0\n"} { // 4: no files
		assert.Equal(t, want, waybillWith(t, "", "__complete", name, "").out, name)
	}
	assert.Contains(t, waybillWith(t, "", "__complete", "adopt", "x", "--ownership", "").out, "Own\nObserve\n")
	assert.Contains(t, waybillWith(t, "", "__complete", "events", "x", "--types", "").out, "Normal\nWarning\n")
	got := waybillWith(t, "", "completion", "bash")
	assert.Equal(t, 0, got.code)
	assert.Contains(t, got.out, "__start_waybill")
}
