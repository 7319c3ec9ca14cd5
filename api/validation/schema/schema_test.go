package schema_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation/schema"
)

func schemas(t *testing.T) *schema.Schemas {
	t.Helper()
	files, err := filepath.Glob("../../../charts/waybill/crds/*.yaml")
	require.NoError(t, err)
	var crds [][]byte
	for _, file := range files {
		crd, err := os.ReadFile(file)
		require.NoError(t, err)
		crds = append(crds, crd)
	}
	s, err := schema.New(crds...)
	require.NoError(t, err)
	return s
}

func object(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(manifest), &u.Object))
	return u
}

// fields are those of the errors, sorted, each once.
func fields(errs field.ErrorList) []string {
	var names []string
	for _, err := range errs {
		names = append(names, err.Field)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func TestSchemas_know(t *testing.T) {
	s := schemas(t)
	for _, kind := range []string{
		v1alpha1.GitSyncKind, v1alpha1.KubernetesClusterKind, v1alpha1.ApplicationDefinitionKind,
		v1alpha1.ApplicationInstallationKind, v1alpha1.ApplicationKind,
	} {
		assert.True(t, s.Knows(v1alpha1.GroupVersion.WithKind(kind)), kind)
	}
	assert.False(t, s.Knows(v1alpha1.GroupVersion.WithKind("Pod")))
	assert.NotEmpty(t, s.Validate(t.Context(), object(t, `{apiVersion: v1, kind: Pod}`), nil), "a kind without a schema is not valid in silence")
}

func TestNew_refuses(t *testing.T) {
	for reason, crd := range map[string]string{
		"no YAML":     "\t",
		"not a CRD":   "kind: Pod\nspec: {containers: []}",
		"no schema":   "kind: CustomResourceDefinition\nspec: {versions: [{name: v1}]}",
		"wrong types": "kind: CustomResourceDefinition\nspec: {versions: 1}",
	} {
		_, err := schema.New([]byte(crd))
		assert.Error(t, err, reason)
	}
}

const sync = "apiVersion: apps.waybill.dev/v1alpha1\nkind: GitSync\nmetadata: {name: a, namespace: b}\n"

// C9, C48
func TestValidate(t *testing.T) {
	s := schemas(t)
	for name, tc := range map[string]struct {
		reason, manifest string
		want             []string
	}{
		"valid":      {"defaults are filled in first", sync + "spec: {url: 'https://git.example.com/x'}", nil},
		"valid null": {"the API server drops it", sync + "spec: {url: 'https://git.example.com/x', path: null}", nil},
		"required":   {"no url", sync + "spec: {}", []string{"spec.url"}},
		"pattern":    {"no such scheme", sync + "spec: {url: 'ftp://git.example.com/x'}", []string{"spec.url"}},
		"type":       {"a number", sync + "spec: {url: 'https://git.example.com/x', path: 1}", []string{"spec.path"}},
		"unknown":    {"would be lost in silence", sync + "spec: {url: 'https://git.example.com/x', pth: a}", []string{"spec.pth"}},
		"unknown in metadata": {"would be lost in silence",
			"apiVersion: apps.waybill.dev/v1alpha1\nkind: GitSync\nmetadata: {name: a, lables: {}}\nspec: {url: 'https://git.example.com/x'}", []string{"metadata.lables"}},
		"rule":           {"CEL", sync + "spec: {url: 'http://git.example.com/x', secretRef: {name: a}}", []string{"spec"}},
		"rule of field":  {"CEL", sync + "spec: {url: 'https://git.example.com/x', interval: 1ms}", []string{"spec.interval"}},
		"shape outranks": {"rules are for objects of the right shape", sync + "spec: {url: 1, interval: 1ms}", []string{"spec.url"}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, fields(s.Validate(t.Context(), object(t, tc.manifest), nil)), tc.reason)
		})
	}
}

// A33, C9
func TestValidate_update(t *testing.T) {
	s := schemas(t)
	const app = "apiVersion: apps.waybill.dev/v1alpha1\nkind: Application\nmetadata: {name: a, namespace: b}\n"
	old := object(t, app+"spec: {type: x, selector: {matchLabels: {app: a}}}")
	changed := object(t, app+"spec: {type: z, selector: {matchLabels: {app: b}}}")
	before := changed.DeepCopy()
	assert.Equal(t, []string{"spec.selector"}, fields(s.Validate(t.Context(), changed, old)))
	assert.Empty(t, s.Validate(t.Context(), changed, nil), "on create there is nothing to keep")
	assert.Empty(t, s.Validate(t.Context(), object(t, app+"spec: {type: z, selector: {matchLabels: {app: a}}}"), old))
	assert.Equal(t, before, changed, "neither object is changed")
}
