package applicationdefinition

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
)

// C28: what an installation calls v1.0.0 and the definition 1.0.0 must not be removed while it is in use.
func TestUsage_countsUnderTheNameOfTheDefinition(t *testing.T) {
	definition := &v1alpha1.ApplicationDefinition{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	definition.Spec.Versions = []v1alpha1.ApplicationVersion{{Version: "1.0.0"}}
	cluster := v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "hub", Name: "berlin"}}
	cluster.Status.Installations = []v1alpha1.InstallationSummary{
		{Namespace: "a", Name: "one", Definition: "web", Version: "v1.0.0"},
		{Namespace: "a", Name: "two", Definition: "web", Version: "1.0.0"},
		{Namespace: "a", Name: "gone", Definition: "web", Version: "v0.9.0"},
	}
	assert.Equal(t, []v1alpha1.VersionUsage{
		{Version: "1.0.0", Count: 2, Installations: []string{"hub/berlin/a/one", "hub/berlin/a/two"}},
		{Version: "v0.9.0", Count: 1, Installations: []string{"hub/berlin/a/gone"}},
	}, usage(definition, []v1alpha1.KubernetesCluster{cluster}))
}
