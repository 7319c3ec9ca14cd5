package kubernetesapplication

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"waybill.dev/waybill/api/v1alpha1"
)

func templateOf(t *testing.T, manifest string) v1alpha1.ResourceTemplate {
	t.Helper()
	made := v1alpha1.ResourceTemplate{Metadata: v1alpha1.ResourceTemplateMetadata{Name: "one"}}
	require.NoError(t, json.Unmarshal([]byte(manifest), &made.Spec.Template))
	return made
}

// W39, W40: what is as it should be is left alone, however it is written, and a broken note
// of ours takes nothing away.
func TestDesired_isStable(t *testing.T) {
	made := templateOf(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"b":"c"}}`)
	made.Metadata.Labels = map[string]string{"app": "web"}
	s := &scope{owner: "hub/KubernetesApplication/team/web", app: &v1alpha1.KubernetesApplication{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web", UID: "1"},
		Spec:       v1alpha1.KubernetesApplicationSpec{ClusterName: "oslo"},
	}}
	live := s.desired(nil, &made)
	assert.Equal(t, []string{v1alpha1.Finalizer}, live.Finalizers)
	assert.True(t, equality.Semantic.DeepEqual(live, s.desired(live, &made)))

	written := templateOf(t, `{ "kind": "ConfigMap", "data": {"b": "c"}, "metadata": {"name": "a"}, "apiVersion": "v1" }`)
	written.Metadata.Labels = made.Metadata.Labels
	assert.True(t, equality.Semantic.DeepEqual(live, s.desired(live, &written)), "the order of fields says nothing")

	live.Annotations[v1alpha1.TemplatedAnnotation] = "{"
	live.Labels["theirs"] = "kept"
	assert.Equal(t, "kept", s.desired(live, &made).Labels["theirs"])
	assert.True(t, s.owns(s.desired(live, &made)))
}

// C57
func TestRequiredKinds(t *testing.T) {
	config := templateOf(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`)
	widget := templateOf(t, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"}}`)
	defines := templateOf(t, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.example.com"},"spec":{"group":"example.com","names":{"kind":"Widget"}}}`)
	core := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	crd := schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	assert.Equal(t, []schema.GroupVersionKind{core, {Group: "example.com", Version: "v1", Kind: "Widget"}},
		requiredKinds([]v1alpha1.ResourceTemplate{config, widget, config}), "each once")
	assert.Equal(t, []schema.GroupVersionKind{core, crd}, requiredKinds([]v1alpha1.ResourceTemplate{config, widget, defines}))
	broken := templateOf(t, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"none"}}`)
	assert.Equal(t, []schema.GroupVersionKind{crd}, requiredKinds([]v1alpha1.ResourceTemplate{broken}))
}
