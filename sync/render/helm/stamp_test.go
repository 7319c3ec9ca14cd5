package helm_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/sync/render/helm"
)

// C53
func TestStamp_marksMetadataAndNothingElse(t *testing.T) {
	marks := helm.Stamp{Labels: map[string]string{"owner": "true"}, Annotations: map[string]string{"by": "hub/x"}}
	cases := map[string]struct{ reason, in, want string }{
		"Bare":     {"metadata without labels", "kind: A\nmetadata: {name: x}\n", "kind: A\nmetadata: {name: x, labels: {owner: \"true\"}, annotations: {by: hub/x}}\n"},
		"Keeps":    {"other labels stay", "kind: A\nmetadata:\n  labels: {a: b}\n", "kind: A\nmetadata:\n  labels: {a: b, owner: \"true\"}\n  annotations: {by: hub/x}\n"},
		"Replaces": {"a chart cannot pretend", "kind: A\nmetadata:\n  labels: {owner: me}\n", "kind: A\nmetadata: {labels: {owner: \"true\"}, annotations: {by: hub/x}}\n"},
		"Null":     {"labels without a value", "kind: A\nmetadata:\n  labels:\n  annotations:\n", "kind: A\nmetadata: {labels: {owner: \"true\"}, annotations: {by: hub/x}}\n"},
		"Selector": {"selectors and templates stay", "kind: A\nspec:\n  selector: {matchLabels: {a: b}}\n  template: {metadata: {labels: {a: b}}}\n",
			"kind: A\nmetadata: {labels: {owner: \"true\"}, annotations: {by: hub/x}}\nspec:\n  selector: {matchLabels: {a: b}}\n  template: {metadata: {labels: {a: b}}}\n"},
		"Scalars": {"what YAML 1.1 reads as a number or a truth stays what it was", "kind: A\ndata: {mode: 0644, yes: on, text: \"on\", n: 1e3}\n",
			"kind: A\ndata: {mode: 420, yes: true, text: \"on\", n: 1000}\nmetadata: {labels: {owner: \"true\"}, annotations: {by: hub/x}}\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out, err := marks.Run(bytes.NewBufferString(tc.in))
			require.NoError(t, err, tc.reason)
			assert.YAMLEq(t, plain(t, tc.want), plain(t, out.String()), tc.reason)
		})
	}
}

// plain reads YAML as a Kubernetes client does.
func plain(t *testing.T, text string) string {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	return string(data)
}

func TestStamp_emptyDocumentsVanish(t *testing.T) {
	out, err := helm.Stamp{}.Run(bytes.NewBufferString("---\n# Source: a.yaml\n\n---\nkind: A\n---\n---\n"))
	require.NoError(t, err)
	assert.Equal(t, "---\nkind: A\n", out.String())
}

func TestStamp_refusesWhatIsNoYAML(t *testing.T) {
	_, err := helm.Stamp{}.Run(bytes.NewBufferString("a: b: c"))
	require.ErrorIs(t, err, helm.ErrRender)
}

func FuzzStamp(f *testing.F) {
	f.Add("kind: A\nmetadata:\n  labels:\n")
	f.Add("kind: List\nitems:\n- kind: A\n- b\n")
	f.Add("metadata: x\n---\n- 1\n---\nitems: [1, {}]\n")
	marks := helm.Stamp{Labels: map[string]string{"owner": "x"}}
	f.Fuzz(func(t *testing.T, text string) {
		once, err := marks.Run(bytes.NewBufferString(text))
		if err != nil {
			assert.ErrorIs(t, err, helm.ErrRender)
			return
		}
		first := once.String()
		twice, err := marks.Run(bytes.NewBufferString(first))
		require.NoError(t, err)
		assert.Equal(t, first, twice.String(), "marking again changes nothing")
	})
}

// Each line that is nested deep is written with its indentation: what is small becomes large.
func TestStamp_boundsIndentation(t *testing.T) {
	nested := "kind: A\nx:\n" + strings.Repeat("- ", 5000) + "[" + strings.Repeat("1 #c\n,", 10_000) + "]\n"
	_, err := stamp.Run(bytes.NewBufferString(nested))
	require.ErrorIs(t, err, helm.ErrRender)
	assert.ErrorContains(t, err, "once they are indented")
}
