package schema_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// corrections make an Application of document A one of ours as far as its first lines go; what
// is left shows what else is wrong with it.
var corrections = strings.NewReplacer(
	"apiVersion: v1\nKind:", "apiVersion: apps.waybill.dev/v1alpha1\nkind:",
	"\n   dependencies:", "\n  dependencies:",
)

// C5: the Applications of document A do not apply as they are written; the corrected ones are
// in examples/application. Verbatim none of them is even an object.
func TestDocumentA_verbatim(t *testing.T) {
	s := schemas(t)
	for name, tc := range map[string]struct {
		verbatim string   // what decoding says
		fields   []string // what the schema says once it can be decoded; without their unknown fields two components are one
	}{
		"composition-wordpress": {"Object 'Kind' is missing", []string{
			"spec.components[0].kind", "spec.components[0].wordpress-mysql-hsvc",
			"spec.components[1]", "spec.components[1].kind", "spec.components[1].wordpress-mysql",
			"spec.components[2].kind", "spec.components[2].wordpress-webserver-hsvc",
			"spec.components[3].kind", "spec.components[3].wordpress-webserver-svc",
			"spec.components[4].kind", "spec.components[4].wordpress-mysql",
			"spec.components[5].kind", "spec.components[5].wordpress-webserver",
			"spec.selector.matchLables", "spec.version",
		}},
		"aggregation-mysql": {"Object 'Kind' is missing", []string{
			"spec.components[0].kind", "spec.components[0].mysql-hsvc",
			"spec.components[1]", "spec.components[1].kind", "spec.components[1].mysql",
			"spec.selector.matchLables", "spec.version",
		}},
		"aggregation-wordpress": {"did not find expected key", []string{
			"spec.components[0].kind", "spec.components[0].wordpress-hsvc",
			"spec.components[1]", "spec.components[1].kind", "spec.components[1].wordpress-svc",
			"spec.components[2].kind", "spec.components[2].wordpress-webserver",
			"spec.selector.matchLables", "spec.version",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			content, err := os.ReadFile("testdata/document-a/" + name + ".yaml")
			require.NoError(t, err)
			assert.ErrorContains(t, decode(string(content), &unstructured.Unstructured{}), tc.verbatim)

			corrected := &unstructured.Unstructured{}
			require.NoError(t, decode(corrections.Replace(string(content)), corrected))
			assert.Equal(t, tc.fields, fields(s.Validate(t.Context(), corrected, nil)))
		})
	}
}

// decode reads one YAML document as kubectl does.
func decode(document string, into *unstructured.Unstructured) error {
	raw, err := yaml.ToJSON([]byte(document))
	if err != nil {
		return err
	}
	return into.UnmarshalJSON(raw)
}
