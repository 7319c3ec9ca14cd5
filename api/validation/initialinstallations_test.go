package validation_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
)

var initialPath = field.NewPath("list")

// K61, K65: a list is read within bounds, and each entry by itself.
func TestInitialInstallations_readsAList(t *testing.T) {
	const good = `{"metadata": {"name": "web", "namespace": "apps", "labels": {"a": "b"}}, "spec": {"applicationRef": {"name": "web"}}}`
	for name, tc := range map[string]struct {
		text string
		// wrong are the fields of the errors of the entries; fails is the error of the whole.
		wrong []string
		fails string
	}{
		"JSON":                  {text: "[" + good + "]"},
		"YAML":                  {text: "- metadata: {name: web, namespace: apps}\n  spec:\n    applicationRef: {name: web}\n    valuesBlock: |\n      a: 1\n"},
		"empty":                 {text: "[]"},
		"with kind":             {text: `[{"apiVersion": "apps.waybill.dev/v1alpha1", "kind": "ApplicationInstallation", ` + good[1:] + "]"},
		"another kind":          {text: `[{"kind": "Secret", ` + good[1:] + "]", wrong: []string{"list[0].kind"}},
		"another version":       {text: `[{"apiVersion": "v1", ` + good[1:] + "]", wrong: []string{"list[0].apiVersion"}},
		"no list":               {text: good, fails: "must be a list"},
		"no YAML":               {text: "a: [", fails: "must be a list"},
		"a key twice":           {text: `[{"spec": {}, "spec": {}}]`, fails: "without duplicate keys"},
		"too large":             {text: "[" + strings.Repeat(" ", 1<<20) + "]", fails: "at most 1048576 bytes"},
		"too many values":       {text: "[" + strings.Repeat("{},", 150_000) + strings.Repeat("{},", 150_000) + "{}]", fails: "at most"},
		"aliases":               {text: "a: &a [1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]", fails: "aliases"},
		"too many entries":      {text: "[" + strings.Repeat("{},", 2000) + "{}]", fails: "at most 2000 entries"},
		"a text among them":     {text: `["web", ` + good + "]", wrong: []string{"list[0]"}},
		"a field of others":     {text: `[{"status": {}, ` + good[1:] + "]", wrong: []string{"list[0]"}},
		"a finalizer":           {text: `[{"metadata": {"name": "web", "namespace": "apps", "finalizers": ["a"]}, "spec": {"applicationRef": {"name": "web"}}}]`, wrong: []string{"list[0]"}},
		"Waybill's own label":   {text: strings.Replace("["+good+"]", `"a": "b"`, `"apps.waybill.dev/provided": "enforced"`, 1), wrong: []string{"list[0].metadata.labels[apps.waybill.dev/provided]"}},
		"no definition":         {text: `[{"metadata": {"name": "web", "namespace": "apps"}, "spec": {}}]`, wrong: []string{"list[0].spec.applicationRef.name"}},
		"one twice":             {text: "[" + good + "," + good + "]", wrong: []string{"list[1].metadata.name"}},
		"one bad among several": {text: `[` + good + `, {"metadata": {"name": "b"}, "spec": {"applicationRef": {"name": "web"}}}]`, wrong: []string{"list[1].metadata.namespace"}},
	} {
		t.Run(name, func(t *testing.T) {
			entries, err := validation.InitialInstallations(tc.text, initialPath)
			if tc.fails != "" {
				require.ErrorContains(t, err, tc.fails)
				return
			}
			require.NoError(t, err)
			var wrong []string
			for i := range entries {
				for _, e := range entries[i].Errors {
					wrong = append(wrong, e.Field)
				}
			}
			assert.Equal(t, tc.wrong, wrong)
		})
	}
}

// K64: an entry that was there before is not checked again, whatever has changed around it.
func TestAddedInitialInstallations_leavesOutWhatWasThere(t *testing.T) {
	asking := func(names ...string) *v1alpha1.KubernetesCluster {
		var entries []string
		for _, name := range names {
			entries = append(entries, fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"apps"},"spec":{"applicationRef":{"name":"web"}}}`, name))
		}
		kc := &v1alpha1.KubernetesCluster{}
		kc.Annotations = map[string]string{v1alpha1.InitialInstallationsAnnotation: "[" + strings.Join(entries, ",") + "]"}
		return kc
	}
	for name, tc := range map[string]struct {
		obj, old *v1alpha1.KubernetesCluster
		added    []string
	}{
		"a new object": {asking("a", "b"), nil, []string{"apps/a", "apps/b"}},
		"one is gone":  {asking("b"), asking("a", "b"), nil},
		"one more":     {asking("a", "b"), asking("b"), []string{"apps/a"}},
		"the same":     {asking("a"), asking("a"), nil},
		"all are gone": {&v1alpha1.KubernetesCluster{}, asking("a"), nil},
		"none was read": {asking("a"), func() *v1alpha1.KubernetesCluster {
			k := asking()
			k.Annotations[v1alpha1.InitialInstallationsAnnotation] = "{"
			return k
		}(), []string{"apps/a"}},
	} {
		t.Run(name, func(t *testing.T) {
			added, err := validation.AddedInitialInstallations(tc.obj, tc.old)
			require.NoError(t, err)
			var names []string
			for _, a := range added {
				names = append(names, a.Name)
			}
			assert.Equal(t, tc.added, names)
		})
	}
}

// FuzzInitialInstallations shows that whatever is read again from what is left of a list is the same list.
func FuzzInitialInstallations(f *testing.F) {
	for _, seed := range []string{"[]", "- metadata: {name: a, namespace: b}", `[{"metadata":{"name":"a"}},1,null]`, "- &a {}\n- *a", "a: 1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		entries, err := validation.InitialInstallations(text, initialPath)
		if err != nil {
			return
		}
		raw := make([]json.RawMessage, len(entries))
		for i := range entries {
			raw[i] = entries[i].Raw
		}
		rest, err := json.Marshal(raw)
		require.NoError(t, err)
		again, err := validation.InitialInstallations(string(rest), initialPath)
		if err != nil {
			t.Skip("what YAML says in a few bytes may be too much as JSON")
		}
		require.Len(t, again, len(entries))
		for i := range again {
			require.Equal(t, entries[i].Name, again[i].Name)
			require.Equal(t, string(entries[i].Raw), string(again[i].Raw), "or it would be asked for anew")
			require.Equal(t, len(entries[i].Errors), len(again[i].Errors))
		}
	})
}
