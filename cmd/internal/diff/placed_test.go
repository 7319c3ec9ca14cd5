package diff

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
)

func resourceTemplate(name string, annotations map[string]string) v1alpha1.ResourceTemplate {
	return v1alpha1.ResourceTemplate{
		Metadata: v1alpha1.ResourceTemplateMetadata{Name: name, Annotations: annotations},
		Spec:     v1alpha1.ResourceTemplateSpec{Template: v1alpha1.ObjectTemplate{APIVersion: "v1", Kind: "ConfigMap", Metadata: v1alpha1.ObjectTemplateMetadata{Name: name}}},
	}
}

// W40, W47, W52: what the templates make of what is there, and what they leave.
func TestPlaced_asTheTemplatesSay(t *testing.T) {
	adopt := map[string]string{v1alpha1.AdoptAnnotation: "true"}
	app := &v1alpha1.KubernetesApplication{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web"}}
	app.Spec.ResourceTemplates = []v1alpha1.ResourceTemplate{
		resourceTemplate("adopted", adopt), resourceTemplate("by-hand", nil), resourceTemplate("new", adopt),
	}
	inventory := &v1alpha1.Inventory{Count: 1}
	live := []v1alpha1.KubernetesApplicationResource{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "gone"}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "by-hand", Annotations: adopt}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "adopted"}, Status: v1alpha1.KubernetesApplicationResourceStatus{Inventory: inventory}},
	}
	wanted, left := placed(app, live)
	require.Len(t, wanted, 3)
	for i, want := range app.Spec.ResourceTemplates {
		assert.Equal(t, want.Metadata.Name, wanted[i].Name)
		assert.Equal(t, "true", wanted[i].Annotations[v1alpha1.AdoptAnnotation], "in the file, or set in the hub by hand")
		assert.Equal(t, want.Spec.Template, wanted[i].Spec.Template)
	}
	assert.Equal(t, inventory, wanted[0].Status.Inventory, "what was delivered is known")
	require.Len(t, left, 1)
	assert.Equal(t, "gone", left[0].Name)
	assert.Equal(t, "by-hand", live[1].Name, "what was read stays as it is")
}
