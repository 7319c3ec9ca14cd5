package values_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/render/values"
)

var errDown = errors.New("connection refused")

// unprotected is a key in objects that lack the label.
const unprotected = "unprotected"

// source holds what is named by kind and name; a nil map stands for one that cannot be read.
type source map[string]map[string][]byte

func (s source) Data(_ context.Context, kind string, name types.NamespacedName) (*values.Object, error) {
	data, found := s[kind+" "+name.String()]
	switch {
	case !found:
		return nil, nil
	case data == nil:
		return nil, errDown
	}
	_, unprotected := data[unprotected]
	return &values.Object{Data: data, Protected: !unprotected}, nil
}

func (s source) Cluster(context.Context) (*v1alpha1.KubernetesCluster, error) {
	c := &v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Name: "berlin", Labels: map[string]string{"tier": "gold"}}}
	c.Status.Version = "v1.36.3"
	return c, nil
}

func raw(t *testing.T, v map[string]any) *apiextensionsv1.JSON {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return &apiextensionsv1.JSON{Raw: text}
}

// input has a value in each layer, and one that each layer sets.
func input(t *testing.T) values.Input {
	t.Helper()
	d := &v1alpha1.ApplicationDefinition{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	d.Spec.DefaultValues = raw(t, map[string]any{"a": "definition", "all": "definition"})
	v := &v1alpha1.ApplicationVersion{Version: "1.0.0", ClusterFacts: true, Template: &v1alpha1.ApplicationTemplate{
		Values: raw(t, map[string]any{"b": "version", "all": "version"}),
	}}
	i := &v1alpha1.ApplicationInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "shop"}}
	i.Spec.ValuesFrom = []v1alpha1.ValuesReference{{Kind: "ConfigMap", Name: "first"}, {Kind: "Secret", Name: "second", Key: "more"}}
	i.Spec.Values = raw(t, map[string]any{"e": "own", "all": "own", "template": "{{ .Release.Name }}"})
	return values.Input{Definition: d, Version: v, Installation: i}
}

// bomb is a long text, and ten thousand aliases to it.
func bomb() []byte {
	return []byte("a: &x " + strings.Repeat("y", 100_000) + "\nb: [" + strings.Repeat("*x,", 10_000) + "]")
}

// dense is a list of that many lists of one value.
func dense(n int) []byte { return []byte("a: [" + strings.Repeat("[x],", n) + "]") }

func contents() source {
	return source{
		"ConfigMap team/first": {"values.yaml": []byte("c: first\nall: first\n")},
		"Secret team/second":   {"more": []byte("d: second\nall: second\nwaybill: {cluster: {name: forged}}\n")},
	}
}

// C26, C33, C59, K25, K39
func TestOf_laterLayersWin(t *testing.T) {
	got, err := values.Of(t.Context(), input(t), contents())
	require.NoError(t, err)
	assert.Equal(t, map[string]any{
		"a": "definition", "b": "version", "c": "first", "d": "second", "e": "own", "all": "own",
		"template": "{{ .Release.Name }}",
		"waybill": map[string]any{"cluster": map[string]any{
			"name": "forged", "version": "v1.36.3", "labels": map[string]any{"tier": "gold"},
		}},
	}, got)
}

func TestOf_block(t *testing.T) {
	in := input(t)
	in.Version.ClusterFacts = false
	in.Installation.Spec.ValuesFrom, in.Installation.Spec.Values = nil, nil
	in.Installation.Spec.ValuesBlock = "# why\nall: block\n"
	got, err := values.Of(t.Context(), in, contents())
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"a": "definition", "b": "version", "all": "block"}, got)
}

func TestOf_saysWhatIsWrong(t *testing.T) {
	cases := map[string]struct {
		reason    string
		change    func(values.Input, source)
		want      string
		elsewhere bool
	}{
		"definition": {
			"the definition is named", func(in values.Input, _ source) { in.Definition.Spec.DefaultValues.Raw = []byte(`["hunter2"]`) },
			"defaultValues of ApplicationDefinition web: must map names to values", false,
		},
		"version": {
			"its version too", func(in values.Input, _ source) { in.Version.Template.Values.Raw = []byte(`"hunter2"`) },
			"values of version 1.0.0 of ApplicationDefinition web: must map names to values", false,
		},
		"block": {
			"values are not repeated", func(in values.Input, _ source) { in.Installation.Spec.ValuesBlock = "hunter2" },
			"spec.valuesBlock is not a YAML mapping of names to values", false,
		},
		"no object": {
			"it may come", func(_ values.Input, s source) { delete(s, "ConfigMap team/first") },
			"spec.valuesFrom[0]: ConfigMap team/first does not exist", true,
		},
		"no key": {
			"it may come", func(_ values.Input, s source) { s["Secret team/second"] = map[string][]byte{} },
			`spec.valuesFrom[1]: Secret team/second has no key "more"`, true,
		},
		"no values": {
			"they are not repeated", func(_ values.Input, s source) { s["Secret team/second"]["more"] = []byte("hunter2") },
			`spec.valuesFrom[1]: Secret team/second: key "more" is not a YAML mapping of names to values`, true,
		},
		"bomb": {
			"a few lines must not fill the memory of all", func(_ values.Input, s source) { s["Secret team/second"]["more"] = bomb() },
			`spec.valuesFrom[1]: Secret team/second: key "more" cannot be used: aliases stand for too many bytes (limit AliasBytes is 5242880)`, true,
		},
		"many values": {
			"each takes fifty times its size", func(_ values.Input, s source) { s["Secret team/second"]["more"] = dense(250_000) },
			`spec.valuesFrom[1]: Secret team/second: key "more" cannot be used: it has more than 200000 values`, true,
		},
		"many values together": {
			"so that it helps nobody to spread them", func(_ values.Input, s source) {
				s["ConfigMap team/first"]["values.yaml"], s["Secret team/second"]["more"] = dense(60_000), dense(60_000)
			},
			"the values of the definition, of spec.valuesFrom and of spec.values have more than 200000 values together", true,
		},
		"many values in JSON": {
			"they need not be YAML", func(in values.Input, _ source) {
				in.Installation.Spec.Values.Raw = []byte(`{"a":[` + strings.Repeat("{},", 150_000) + `{}]}`)
			},
			"spec.values: the JSON text contains more than 200000 values", false,
		},
		"bomb in a block": {
			"whoever writes it", func(in values.Input, _ source) { in.Installation.Spec.ValuesBlock = string(bomb()) },
			"spec.valuesBlock cannot be used: aliases stand for too many bytes (limit AliasBytes is 5242880)", false,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in, from := input(t), contents()
			tc.change(in, from)
			_, err := values.Of(t.Context(), in, from)
			var invalid *values.InvalidError
			require.ErrorAs(t, err, &invalid)
			assert.EqualError(t, invalid, tc.want, tc.reason)
			assert.Equal(t, tc.elsewhere, invalid.Elsewhere)
		})
	}
}

// C60: without an account, only what is protected is used, whether or not it is optional.
func TestOf_withoutAnAccountTakesWhatIsProtected(t *testing.T) {
	for name, tc := range map[string]struct {
		reason           string
		account          string
		optional, remove bool
		installed        []string
		want             string
	}{
		"no account":                {"whoever may edit it could decide what is installed", "", false, false, nil, "spec.valuesFrom[0]: ConfigMap team/first lacks the label apps.waybill.dev/values: protected"},
		"no account, optional":      {"it is there, so it is not left out in silence", "", true, false, nil, "spec.valuesFrom[0]: ConfigMap team/first lacks the label"},
		"an account":                {"what it decides is done with the rights of that", "deployer", false, false, nil, ""},
		"optional, gone":            {"it was never there", "", true, true, []string{"ConfigMap/other"}, ""},
		"optional, deleted":         {"deletions are not guarded", "", true, true, []string{"ConfigMap/first"}, "spec.valuesFrom[0]: ConfigMap team/first no longer exists"},
		"optional, deleted, acting": {"whoever deletes it decides about an account's rights", "deployer", true, true, []string{"ConfigMap/first"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			in, from := input(t), contents()
			in.Account, in.Installation.Spec.ValuesFrom[0].Optional, in.Installation.Status.OptionalValues = tc.account, tc.optional, tc.installed
			from["ConfigMap team/first"][unprotected] = nil
			if tc.remove {
				delete(from, "ConfigMap team/first")
			}
			_, err := values.Of(t.Context(), in, from)
			if tc.want == "" {
				require.NoError(t, err, tc.reason)
				return
			}
			var invalid *values.InvalidError
			require.ErrorAs(t, err, &invalid, tc.reason)
			assert.Contains(t, err.Error(), tc.want)
			assert.Equal(t, !tc.remove, invalid.Unprotected)
			assert.True(t, invalid.Elsewhere)
		})
	}
}

func TestOf_optional(t *testing.T) {
	in, from := input(t), contents()
	in.Installation.Spec.ValuesFrom[0].Optional, in.Installation.Spec.ValuesFrom[1].Optional = true, true
	delete(from, "ConfigMap team/first")
	from["Secret team/second"] = map[string][]byte{}
	got, err := values.Of(t.Context(), in, from)
	require.NoError(t, err)
	assert.NotContains(t, got, "c")

	from["ConfigMap team/first"] = nil
	_, err = values.Of(t.Context(), in, from)
	require.ErrorIs(t, err, errDown, "what cannot be read may well be there")
}
