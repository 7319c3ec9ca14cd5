package dashboard

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/mask"
	"waybill.dev/waybill/sync/render/values/schema"
)

// Secret values are hidden wherever a chart has put them, and nothing else is.
func TestStrikes_in(t *testing.T) {
	for reason, tc := range map[string]struct{ secret, shown, want any }{
		"a part of a text":                        {"hunter2", "admin:hunter2@db", "admin:***@db"},
		"a short one is all of a text":            {"pass", "pass", "***"},
		"a short one may be part of another word": {"pass", "compass", "compass"},
		"each line, however it is indented":       {"BEGIN-KEY\n  MIIEvQIB\n", "cert: |\n      BEGIN-KEY\n      MIIEvQIB\n", "cert: |\n      ***\n      ***\n"},
		"short lines are of many texts":           {"secret-1\nend\n", "to the end", "to the end"},
		"two that overlap":                        {[]any{"hunter2", "ter2-of-berlin"}, "x hunter2-of-berlin", "x ***"},
		"the longest first":                       {[]any{"hunter2", "hunter2-of-berlin"}, "x hunter2-of-berlin", "x ***"},
		"a number":                                {float64(123456), map[string]any{"pin": int64(123456), "port": int64(80)}, map[string]any{"pin": "***", "port": int64(80)}},
		"a number in a text":                      {int64(123456), "pin=123456", "pin=***"},
		"each value of a map":                     {map[string]any{"a": map[string]any{"b": "hunter2"}}, []any{"hunter2", map[string]any{"c": "hunter2"}}, []any{"***", map[string]any{"c": "***"}}},
		"true is no secret":                       {true, map[string]any{"enabled": true, "text": "true"}, map[string]any{"enabled": true, "text": "true"}},
		"nothing is no secret":                    {"", "text", "text"},
	} {
		s := &strikes{}
		s.add(tc.secret)
		manifest := map[string]any{"spec": tc.shown}
		s.in(manifest)
		assert.Equal(t, tc.want, manifest["spec"], reason)
	}
}

// Kind and name of an object stay: they say which one it is.
func TestStrikes_namesStay(t *testing.T) {
	s := &strikes{}
	s.add([]any{"hunter2", "ConfigMap"})
	manifest := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
		"name": "hunter2", "namespace": "hunter2", "labels": map[string]any{"a": "hunter2"}, "annotations": map[string]any{"b": "is hunter2"},
	}}
	s.in(manifest)
	assert.Equal(t, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
		"name": "hunter2", "namespace": "hunter2", "labels": map[string]any{"a": "***"}, "annotations": map[string]any{"b": "is ***"},
	}}, manifest)
}

// Where there is more than can be looked for, no text is shown.
func TestStrikes_tooMany(t *testing.T) {
	s := &strikes{}
	for i := range maxStrikes / 8 {
		s.add(int64(10_000_000 + i))
	}
	assert.Equal(t, "all but 1***", s.from("all but 110000001"))
	s.add("one more")
	manifest := map[string]any{"kind": "ConfigMap", "metadata": map[string]any{"name": "web"}, "data": map[string]any{"a": "text", "b": int64(1), "c": true, "d": ""}}
	s.in(manifest)
	assert.Equal(t, map[string]any{
		"kind": "ConfigMap", "metadata": map[string]any{"name": "web"}, "data": map[string]any{"a": mask.Hidden, "b": mask.Hidden, "c": true, "d": ""},
	}, manifest)
}

// curtainBy returns a curtain for definition web, whose versions mark these values of their charts as secret, and what it warns of.
func curtainBy(t *testing.T, marked map[string]string) (*curtain, *[]string) {
	t.Helper()
	definition, warned, looks := &v1alpha1.ApplicationDefinition{}, &[]string{}, schema.NewLooks()
	for version := range marked {
		definition.Spec.Versions = append(definition.Spec.Versions, v1alpha1.ApplicationVersion{Version: version})
	}
	return &curtain{
		offers: func(string) (*v1alpha1.ApplicationDefinition, error) { return definition, nil },
		of: func(_ *v1alpha1.ApplicationDefinition, version string) (secrecy, error) {
			if marked[version] == "" {
				return secrecy{}, errors.New("the chart is away")
			}
			found, err := schema.Compile([]byte(`{"schema": {"properties": {"` + marked[version] + `": {"format": "password"}}}}`))
			require.NoError(t, err)
			return secrecyBy(found, looks), nil
		},
		warn:  func(format string, _ ...any) { *warned = append(*warned, format) },
		looks: looks, known: map[string]secrecy{}, failed: map[string]error{},
	}, warned
}

func installationAt(version string, values map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.ApplicationInstallationKind, "metadata": map[string]any{"name": "web"},
		"spec": map[string]any{"applicationRef": map[string]any{"name": "web", "version": version}, "values": values},
	}}
}

func shownValues(t *testing.T, o *unstructured.Unstructured, path ...string) map[string]any {
	t.Helper()
	found, _, err := unstructured.NestedMap(o.Object, path...)
	require.NoError(t, err)
	return found
}

// Where two versions mark different values, those of both are hidden in both states: a value does not stop to be secret by an upgrade.
func TestCurtain_pairHidesWhatEitherMarks(t *testing.T) {
	c, _ := curtainBy(t, map[string]string{"1.0.0": "a", "2.0.0": "b"})
	all := func(of string) map[string]any { return map[string]any{"a": "a" + of, "b": "b" + of, "c": "c" + of} }
	was, is := c.pair(installationAt("1.0.0", all("1")), installationAt("2.0.0", all("2")))
	assert.Equal(t, map[string]any{"a": mask.Before, "b": mask.Before, "c": "c1"}, shownValues(t, was, "spec", "values"))
	assert.Equal(t, map[string]any{"a": mask.After, "b": mask.After, "c": "c2"}, shownValues(t, is, "spec", "values"))
	was, is = c.pair(nil, installationAt("2.0.0", all("2")))
	assert.Nil(t, was)
	assert.Equal(t, map[string]any{"a": "a2", "b": mask.Hidden, "c": "c2"}, shownValues(t, is, "spec", "values"), "of one that is created")
}

// Values that all versions have are hidden if one of them marks them, and kubectl's copy of the object has them, too.
func TestCurtain_valuesOfADefinition(t *testing.T) {
	c, _ := curtainBy(t, map[string]string{"1.0.0": "a", "2.0.0": "b"})
	shown := c.one(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.ApplicationDefinitionKind,
		"metadata": map[string]any{"name": "web", "annotations": map[string]any{mask.LastApplied: `{"a": 1}`}},
		"spec":     map[string]any{"defaultValues": map[string]any{"a": "1", "b": "2", "c": "3"}},
	}})
	assert.Equal(t, map[string]any{"a": mask.Hidden, "b": mask.Hidden, "c": "3"}, shownValues(t, shown, "spec", "defaultValues"))
	assert.Equal(t, map[string]any{mask.LastApplied: mask.Hidden}, shownValues(t, shown, "metadata", "annotations"))
}

// Where it is not known what a chart marks, every value is hidden, which is said once, and not asked for again.
func TestCurtain_hidesAllThatIsNotKnown(t *testing.T) {
	c, warned := curtainBy(t, map[string]string{"1.0.0": "", "2.0.0": "b"})
	for _, version := range []string{"1.0.0", "1.0.0", "2.0.0"} {
		shown := c.one(installationAt(version, map[string]any{"b": "2", "c": map[string]any{"d": []any{"3"}}}))
		assert.Equal(t, map[string]any{"b": mask.Hidden, "c": map[string]any{"d": []any{mask.Hidden}}}, shownValues(t, shown, "spec", "values"), version)
	}
	assert.NotEmpty(t, *warned)
	noValues := installationAt("1.0.0", nil)
	noValues.Object["spec"].(map[string]any)["valuesBlock"] = "[no: map"
	assert.Equal(t, mask.Hidden, shownValues(t, c.one(noValues), "spec")["valuesBlock"], "what is no YAML may be anything")
}
