package validation_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"waybill.dev/waybill/api/v1alpha1"
)

func fieldsOf(spec any) []string {
	var names []string
	for _, field := range reflect.VisibleFields(reflect.TypeOf(spec)) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// W4, W5, W6, W29: the kinds leave room for others than Kubernetes beside them, and say nothing
// of several clusters, of configuration, of other workloads, or of a namespace for all objects.
func TestKubernetesApplication_saysNoMoreThanItIsFor(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	for _, kind := range []string{v1alpha1.KubernetesApplicationKind, v1alpha1.KubernetesApplicationResourceKind} {
		assert.True(t, strings.HasPrefix(kind, "Kubernetes"))
		assert.True(t, scheme.Recognizes(v1alpha1.GroupVersion.WithKind(kind)))
	}
	assert.Equal(t, "apps.waybill.dev/v1alpha1", v1alpha1.GroupVersion.String())
	assert.ElementsMatch(t, []string{"clusterSelector", "clusterName", "resourceTemplates"}, fieldsOf(v1alpha1.KubernetesApplicationSpec{}))
	assert.ElementsMatch(t, []string{"clusterName", "template", "secrets"}, fieldsOf(v1alpha1.KubernetesApplicationResourceSpec{}))
	assert.ElementsMatch(t, []string{"template", "secrets"}, fieldsOf(v1alpha1.ResourceTemplateSpec{}))
}
