package v1alpha1_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/v1alpha1"
)

const crds = "../../charts/waybill/crds"

// C9, C48: in a schema a duration is any string. One that no client can decode fails the list of all
// objects of its kind, so the schema has to refuse it.
func TestDurations_areCheckedByTheSchema(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	files, err := filepath.Glob(filepath.Join(crds, "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	found := 0
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		crd := &apiextensionsv1.CustomResourceDefinition{}
		require.NoError(t, yaml.Unmarshal(content, crd), file)
		obj, err := scheme.New(v1alpha1.GroupVersion.WithKind(crd.Spec.Names.Kind))
		require.NoError(t, err, file)
		durations(reflect.TypeOf(obj), crd.Spec.Versions[0].Schema.OpenAPIV3Schema, crd.Spec.Names.Kind, func(path string, schema *apiextensionsv1.JSONSchemaProps) {
			found++
			assert.True(t, len(schema.XValidations) > 0 && strings.Contains(schema.XValidations[0].Rule, "duration(self)"),
				"%s has no rule that says what a duration is", path)
		})
	}
	assert.GreaterOrEqual(t, found, 5, "those of GitSync, ApplicationInstallation and ApplicationDefinition")
}

// durations calls found for each duration of a type, with its schema.
func durations(t reflect.Type, schema *apiextensionsv1.JSONSchemaProps, path string, found func(path string, schema *apiextensionsv1.JSONSchemaProps)) {
	switch t.Kind() {
	case reflect.Pointer:
		durations(t.Elem(), schema, path, found)
	case reflect.Slice:
		if schema.Items != nil {
			durations(t.Elem(), schema.Items.Schema, path+"[]", found)
		}
	case reflect.Map:
		if schema.AdditionalProperties != nil {
			durations(t.Elem(), schema.AdditionalProperties.Schema, path+"{}", found)
		}
	case reflect.Struct:
		if t == reflect.TypeFor[metav1.Duration]() {
			found(path, schema)
			return
		}
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" && f.Anonymous {
				durations(f.Type, schema, path, found)
			} else if property, ok := schema.Properties[name]; ok {
				durations(f.Type, &property, path+"."+name, found)
			}
		}
	}
}
