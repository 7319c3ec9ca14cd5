package webhooks_test

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/api/v1alpha1"
)

func newObject(apiVersion, kind, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetAPIVersion(apiVersion)
	object.SetKind(kind)
	object.SetName(name)
	return object
}

func newTemplate(object *unstructured.Unstructured) v1alpha1.ObjectTemplate {
	template, err := v1alpha1.NewObjectTemplate(object)
	if err != nil {
		return v1alpha1.ObjectTemplate{} // refused in every request
	}
	return template
}

func newResourceTemplate(name string, object *unstructured.Unstructured) v1alpha1.ResourceTemplate {
	return v1alpha1.ResourceTemplate{
		Metadata: v1alpha1.ResourceTemplateMetadata{Name: name},
		Spec:     v1alpha1.ResourceTemplateSpec{Template: newTemplate(object)},
	}
}

// newKubernetesApplication returns one with a single template, web, of a ConfigMap.
func newKubernetesApplication(namespace string) *v1alpha1.KubernetesApplication {
	return &v1alpha1.KubernetesApplication{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
		Spec: v1alpha1.KubernetesApplicationSpec{
			ClusterSelector:   &metav1.LabelSelector{MatchLabels: map[string]string{"region": "north"}},
			ResourceTemplates: []v1alpha1.ResourceTemplate{newResourceTemplate("web", newObject("v1", "ConfigMap", "web"))},
		},
	}
}

func newKubernetesApplicationResource(namespace string, object *unstructured.Unstructured) *v1alpha1.KubernetesApplicationResource {
	return &v1alpha1.KubernetesApplicationResource{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
		Spec:       v1alpha1.KubernetesApplicationResourceSpec{Template: newTemplate(object)},
	}
}

func newJSON(raw []byte) *apiextensionsv1.JSON { return &apiextensionsv1.JSON{Raw: raw} }
