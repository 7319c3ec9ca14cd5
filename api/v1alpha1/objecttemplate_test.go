package v1alpha1_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/api/v1alpha1"
)

// W17, W56: what identifies an object is read from the very fields that an API server reads.
func TestObjectTemplate_mindsTheCaseOfFields(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		raw    string
		kind   string
		object string
	}{
		"as it should be":  {"the usual", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web"}}`, "ConfigMap", "web"},
		"another Kind":     {"Kind is an opaque field, also where it comes last", `{"apiVersion":"v1","kind":"ConfigMap","Kind":"Secret","metadata":{"name":"web"}}`, "ConfigMap", "web"},
		"only a Kind":      {"an API server sees none", `{"apiVersion":"v1","Kind":"Secret","metadata":{"name":"web"}}`, "", "web"},
		"another Metadata": {"so is Metadata", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web"},"Metadata":{"name":"other"}}`, "ConfigMap", "web"},
		"another Name":     {"and what is in it", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web","Name":"other"}}`, "ConfigMap", "web"},
	} {
		t.Run(name, func(t *testing.T) {
			var template v1alpha1.ObjectTemplate
			require.NoError(t, json.Unmarshal([]byte(tc.raw), &template))
			assert.Equal(t, tc.kind, template.Kind, tc.reason)
			assert.Equal(t, tc.object, template.Metadata.Name, tc.reason)
			assert.JSONEq(t, tc.raw, string(template.Raw), "nothing is lost")
		})
	}
}
