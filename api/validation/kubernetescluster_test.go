package validation_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
)

// C38
func TestValidateKubernetesCluster(t *testing.T) {
	ref := spec.Child("kubeconfigSecretRef")
	for name, tc := range map[string]struct {
		reason string
		spec   v1alpha1.KubernetesClusterSpec
		want   field.ErrorList
	}{
		"local":  {"the cluster that the object lives in", v1alpha1.KubernetesClusterSpec{}, nil},
		"secret": {"a user cluster", v1alpha1.KubernetesClusterSpec{KubeconfigSecretRef: &v1alpha1.SecretKeyReference{Name: "berlin", Key: "kubeconfig"}, OnDelete: v1alpha1.DeleteAbandon}, nil},
		"empty":  {"names nothing", v1alpha1.KubernetesClusterSpec{KubeconfigSecretRef: &v1alpha1.SecretKeyReference{}}, field.ErrorList{field.Required(ref.Child("name"), "")}},
		"key":    {"no Secret can have that key", v1alpha1.KubernetesClusterSpec{KubeconfigSecretRef: &v1alpha1.SecretKeyReference{Name: "a", Key: "a/b"}}, field.ErrorList{field.Invalid(ref.Child("key"), "a/b", "")}},
		"policy": {"no such policy", v1alpha1.KubernetesClusterSpec{OnDelete: "Forget"}, field.ErrorList{field.NotSupported(spec.Child("onDelete"), v1alpha1.DeletePolicy("Forget"), []string{})}},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Name: "berlin"}, Spec: tc.spec}
			assertErrors(t, tc.want, validation.ValidateKubernetesCluster(obj, nil), tc.reason)
		})
	}
}

func TestKubernetesClusterWarnings(t *testing.T) {
	c := &v1alpha1.KubernetesCluster{}
	assert.Empty(t, validation.KubernetesClusterWarnings(c))
	c.Spec.OnDelete = v1alpha1.DeleteAbandon
	assert.Len(t, validation.KubernetesClusterWarnings(c), 1, "what runs there is forgotten")
}
