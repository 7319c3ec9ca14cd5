package release

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	helmrelease "helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"waybill.dev/waybill/sync/render/helm"
)

// What is read as JSON is what is read as YAML, by its rules for what is a number or true.
func TestMemo_readsTheSameInJSON(t *testing.T) {
	c, err := newClient(t.Context(), &offering{nowhere{"example.com"}}, Identity{Namespace: "shop", Name: "web"})
	require.NoError(t, err)
	const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n"
	for _, tc := range []struct{ reason, text string }{
		{"nothing is nothing", ""},
		{"documents may be empty", "---\n# Source: a\n---\n" + configMap + "---\n---\nnull\n"},
		{"each document is an object", "---\n# Source: a\n" + configMap + "---\n" + strings.ReplaceAll(configMap, "one", "two")},
		{"a scalar has the type that YAML 1.1 gives to it", configMap + "data: {a: yes, b: 0o17, c: 017, d: 1_000, e: 12345678901234567890, f: 1e3, g: .5, h: ~, i: 2001-01-01, j: 0x1F, k: on, l: 9007199254740993, m: \"yes\"}\n"},
		{"keys may be anything", configMap + "data: {1: a, true: b, 1.5: c}\n"},
		{"text has lines, and aliases are followed", configMap + "data:\n  a: &a |\n    x: y\n    ---- z\n  b: *a\n  c: \"\\u2028<>&\"\n"},
		{"a list has items", "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: one}}\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: two}}\n"},
		{"this may be JSON", `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}}` + "\n---\n" + configMap},
		{"this is not an object", configMap + "---\n- a\n"},
		{"this is not YAML", configMap + "---\na: [\n"},
		{"this kind is unknown", strings.ReplaceAll(configMap, "ConfigMap", "Secret")},
	} {
		plain, plainErr := c.build(strings.NewReader(tc.text), "manifest", true)
		for range 2 {
			list, err := c.build(strings.NewReader(c.memo.json(tc.text)), "manifest", true)
			assert.Equal(t, plainErr, err, tc.reason)
			require.Len(t, list, len(plain), tc.reason)
			for i := range list {
				assert.Equal(t, plain[i].Object, list[i].Object, tc.reason)
				assert.Equal(t, idOf(plain[i]), idOf(list[i]), tc.reason)
			}
		}
	}
}

func TestMemo_isBounded(t *testing.T) {
	m := NewMemo()
	m.put(memoKeyOf("large"), strings.Repeat("x", memoText+1))
	_, known := m.texts.Lookup(memoKeyOf("large"))
	assert.False(t, known, "one text must not take the place of all others")

	some := strings.Repeat("x", memoText)
	for i := range memoBytes / memoText {
		m.put(memoKeyOf(strings.Repeat("a", i)), some)
	}
	m.put(memoKeyOf("aa"), some)
	_, known = m.texts.Lookup(memoKeyOf(""))
	require.True(t, known, "everything has room, and nothing is counted twice")
	m.put(memoKeyOf("one more"), some)
	_, known = m.texts.Lookup(memoKeyOf("a"))
	assert.False(t, known, "what was used least recently makes room")
	_, known = m.texts.Lookup(memoKeyOf(""))
	assert.True(t, known)

	m.forget.Reset(0)
	require.Eventually(t, func() bool { return m.texts.Len() == 0 }, time.Minute, time.Millisecond, "nothing is kept once no release is made")
}

func TestMemoKey_tellsPartsApart(t *testing.T) {
	assert.NotEqual(t, memoKeyOf("a", "bc"), memoKeyOf("ab", "c"))
	assert.NotEqual(t, memoKeyOf("a", ""), memoKeyOf("a"))
}

// What a second cluster gets of an application is just what the first one has got.
func TestSorted_isWhatHelmMakes(t *testing.T) {
	const (
		hook     = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: hook\n  annotations: {helm.sh/hook: pre-install, helm.sh/hook-weight: \"2\"}\n"
		disguise = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: hook\n  annotations: {\"helm.sh\\x2fhook\": pre-install}\n"
		first    = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: b}\n---\napiVersion: v1\nkind: Service\nmetadata:\n  name: a\n  labels:\n"
		second   = "apiVersion: v1\nkind: Namespace\nmetadata: {name: c}\n"
	)
	for name, tc := range map[string]struct {
		reason string
		files  map[string]string
		hooks  int
		known  bool
	}{
		"objects":          {"Helm sorts them by kind", map[string]string{"x.yaml": first, "y.yaml": second}, 0, true},
		"nothing":          {"a chart may have nothing to install", map[string]string{"x.yaml": "\n"}, 0, true},
		"hooks and notes":  {"they are no part of the manifest", map[string]string{"x.yaml": first + "---\n" + hook, "y.yaml": second, "z.yaml": hook, "NOTES.txt": "Hello"}, 2, true},
		"a disguised hook": {"it is not found without parsing", map[string]string{"x.yaml": first, "y.yaml": disguise}, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			rendered := &helm.Rendered{Chart: &chart.Chart{Metadata: &chart.Metadata{APIVersion: "v2", Name: "one", Version: "1.0.0"}}, Files: map[string]string{}}
			for path, text := range tc.files {
				rendered.Files["one/templates/"+path] = text
			}
			m := NewMemo()
			stamp := helm.Stamp{Labels: map[string]string{"owner": "hub"}}
			made := func(s *sorted) *helmrelease.Release {
				flat, values, err := s.left(rendered).Flat()
				require.NoError(t, err)
				run := action.NewInstall(&action.Configuration{Capabilities: chartutil.DefaultCapabilities})
				run.ReleaseName, run.ClientOnly, run.DryRun, run.PostRenderer = "one", true, true, s
				got, err := run.Run(flat, values)
				require.NoError(t, err)
				return got
			}
			byHelm := made(&sorted{stamp: stamp})
			assert.Len(t, byHelm.Hooks, tc.hooks)
			for range 2 {
				s := m.sorted(rendered, stamp)
				assert.Equal(t, tc.known, s.known, tc.reason)
				got := made(s)
				assert.Equal(t, byHelm.Manifest, got.Manifest, tc.reason)
				assert.Equal(t, byHelm.Hooks, got.Hooks, tc.reason)
				assert.Equal(t, byHelm.Info.Notes, got.Info.Notes, tc.reason)
			}
		})
	}
}

// The same texts with other marks, and others with the same marks, are other manifests.
func TestSorted_goesByTextsAndMarks(t *testing.T) {
	m := NewMemo()
	seen := map[string]bool{}
	for _, text := range []string{"kind: A", "kind: B"} {
		for _, owner := range []string{"hub", "other"} {
			rendered := &helm.Rendered{Files: map[string]string{"one/templates/x.yaml": text}}
			for range 2 {
				seen[m.sorted(rendered, helm.Stamp{Labels: map[string]string{"owner": owner}}).manifest] = true
			}
		}
	}
	assert.Len(t, seen, 4)
	assert.Equal(t, 4, m.texts.Len())
}

// What cannot be sorted or marked is left to Helm, which says why.
func TestSorted_leavesToHelmWhatIsWrong(t *testing.T) {
	m := NewMemo()
	for _, text := range []string{"a: [", "- a: ["} {
		rendered := &helm.Rendered{Files: map[string]string{"one/templates/x.yaml": text}}
		s := m.sorted(rendered, helm.Stamp{})
		assert.False(t, s.known)
		assert.Same(t, rendered, s.left(rendered))
	}
	assert.Zero(t, m.texts.Len(), "an error is not remembered")
}

// counting counts what a RESTMapper is asked for.
type counting struct {
	meta.RESTMapper
	asked []string
}

func (c *counting) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	c.asked = append(c.asked, kind.Kind+" "+strings.Join(versions, ","))
	return c.RESTMapper.RESTMapping(kind, versions...)
}

func TestMappings_askOnceForEachKindThatIsThere(t *testing.T) {
	asked := &counting{RESTMapper: (&offering{}).Mapper()}
	m := &mappings{RESTMapper: asked}
	for range 2 {
		found, err := m.RESTMapping(schema.GroupKind{Kind: "ConfigMap"}, "v1")
		require.NoError(t, err)
		assert.Equal(t, "configmaps", found.Resource.Resource)
		_, err = m.RESTMapping(schema.GroupKind{Kind: "Gadget"}, "v1")
		assert.True(t, meta.IsNoMatchError(err), "its CRD may be on its way")
	}
	slices.Sort(asked.asked)
	assert.Equal(t, []string{"ConfigMap v1", "Gadget v1", "Gadget v1"}, asked.asked)
}
