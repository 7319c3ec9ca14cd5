package release

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  versions:
  - {name: v1beta1, served: true, schema: {openAPIV3Schema: {type: object}}}
  - name: v1
    served: true
    subresources: {status: {}, scale: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          size: {type: integer}
          port: {x-kubernetes-int-or-string: true}
          free: {type: object, x-kubernetes-preserve-unknown-fields: true}
          labels: {type: object, additionalProperties: {type: string}}
          parts: {type: array, items: {type: object, properties: {name: {type: string}}}}
`

func TestRemoved(t *testing.T) {
	for name, c := range map[string]struct{ from, to, want string }{
		"nothing":       {"size", "size", ""},
		"more":          {"parts:", "more: {type: string}\n          parts:", ""},
		"widened":       {"size: {type: integer}", "size: {type: number}", ""},
		"field":         {"          size: {type: integer}\n", "", ".size of version v1"},
		"version":       {"name: v1beta1", "name: v1alpha1", "version v1beta1"},
		"served":        {"{name: v1beta1, served: true", "{name: v1beta1, served: false", "the serving of version v1beta1"},
		"status":        {"{status: {}, scale: {}}", "{scale: {}}", "subresource status of version v1"},
		"scale":         {"{status: {}, scale: {}}", "{status: {}}", "subresource scale of version v1"},
		"type":          {"size: {type: integer}", "size: {type: string}", "the type of .size of version v1"},
		"int or string": {"port: {x-kubernetes-int-or-string: true}", "port: {type: integer}", "the type of .port of version v1"},
		"unknown":       {", x-kubernetes-preserve-unknown-fields: true", "", "x-kubernetes-preserve-unknown-fields at .free of version v1"},
		"map":           {", additionalProperties: {type: string}", "", ".labels.* of version v1"},
		"map to any":    {"additionalProperties: {type: string}", "x-kubernetes-preserve-unknown-fields: true", ""},
		"item":          {"properties: {name: {type: string}}", "properties: {other: {type: string}}", ".parts[].name of version v1"},
		"items":         {"parts: {type: array, items: {type: object, properties: {name: {type: string}}}}", "parts: {type: array}", ".parts[] of version v1"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, definition, c.from)
			was, is := &unstructured.Unstructured{}, &unstructured.Unstructured{}
			require.NoError(t, yaml.Unmarshal([]byte(definition), &was.Object))
			require.NoError(t, yaml.Unmarshal([]byte(strings.Replace(definition, c.from, c.to, 1)), &is.Object))
			assert.Equal(t, c.want, strings.Join(removed(was, is), "; "))
		})
	}
}
