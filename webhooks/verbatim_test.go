package webhooks_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// corrections make an Application of the proposal one of ours as far as its first lines go; what
// is left shows what else is wrong with it.
var corrections = strings.NewReplacer(
	"apiVersion: v1\nKind:", "apiVersion: apps.waybill.dev/v1alpha1\nkind:",
	"\n   dependencies:", "\n  dependencies:",
)

// C5: the Applications of the proposal that the kind comes from do not apply as they are written;
// the corrected ones are in examples/application. Verbatim none of them is even an object, and behind that is more.
func TestApplication_verbatimFromTheProposal(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	typos := []string{"spec.selector.matchLables", "spec.components[0].", "spec.version", "spec.components[0].kind"}
	for name, verbatim := range map[string]string{
		"composition-wordpress": "Object 'Kind' is missing",
		"aggregation-mysql":     "Object 'Kind' is missing",
		"aggregation-wordpress": "did not find expected key",
	} {
		t.Run(name, func(t *testing.T) {
			content, err := os.ReadFile("testdata/proposal/" + name + ".yaml")
			require.NoError(t, err)
			require.ErrorContains(t, decode(string(content), &unstructured.Unstructured{}), verbatim)

			corrected := &unstructured.Unstructured{}
			require.NoError(t, decode(corrections.Replace(string(content)), corrected))
			require.Equal(t, v1alpha1.ApplicationKind, corrected.GetKind())
			corrected.SetNamespace(c.Namespace(t))
			strict := admin.Create(t.Context(), corrected.DeepCopy(), client.FieldValidation("Strict"))
			require.True(t, apierrors.IsBadRequest(strict), "as kubectl asks for: %v", strict)
			lenient := admin.Create(t.Context(), corrected.DeepCopy())
			require.True(t, apierrors.IsInvalid(lenient), "unknown fields dropped: %v", lenient)
			for _, typo := range typos {
				assert.Contains(t, strict.Error()+lenient.Error(), typo)
			}
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
