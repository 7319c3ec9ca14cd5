package validation_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
)

// agent returns a spec with an agent, of a cluster with that Secret.
func agent(secret, values string) v1alpha1.KubernetesClusterSpec {
	s := v1alpha1.KubernetesClusterSpec{Agent: &v1alpha1.ClusterAgent{}}
	if secret != "" {
		s.KubeconfigSecretRef = &v1alpha1.SecretKeyReference{Name: secret}
	}
	if values != "" {
		s.Agent.Values = &apiextensionsv1.JSON{Raw: []byte(values)}
	}
	return s
}

// C38
func TestValidateKubernetesCluster(t *testing.T) {
	ref, values := spec.Child("kubeconfigSecretRef"), spec.Child("agent", "values")
	for name, tc := range map[string]struct {
		reason string
		spec   v1alpha1.KubernetesClusterSpec
		want   field.ErrorList
	}{
		"local":  {"the cluster that the object lives in", v1alpha1.KubernetesClusterSpec{}, nil},
		"secret": {"a user cluster", v1alpha1.KubernetesClusterSpec{KubeconfigSecretRef: &v1alpha1.SecretKeyReference{Name: "berlin", Key: "kubeconfig"}, OnDelete: v1alpha1.DeleteAbandon}, nil},
		"empty":  {"names nothing", v1alpha1.KubernetesClusterSpec{KubeconfigSecretRef: &v1alpha1.SecretKeyReference{}}, field.ErrorList{field.Required(ref.Child("name"), "")}},
		"key":    {"no Secret can have that key", v1alpha1.KubernetesClusterSpec{KubeconfigSecretRef: &v1alpha1.SecretKeyReference{Name: "a", Key: "a/b"}}, field.ErrorList{field.Invalid(ref.Child("key"), "a/b", "")}},
		"agent":  {"with values of the chart", agent("berlin", `{"roles":{"hub":false,"data":true}}`), nil},
		"hub":    {"what drives clusters is no agent", agent("berlin", `{"roles":{"hub":true}}`), field.ErrorList{field.Forbidden(values.Child("roles", "hub"), "")}},
		"driver": {"nor is this", agent("berlin", `{"roles":{"driver":"yes"}}`), field.ErrorList{field.Forbidden(values.Child("roles", "driver"), "")}},
		"roles":  {"roles have names", agent("berlin", `{"roles":[]}`), field.ErrorList{field.TypeInvalid(values.Child("roles"), field.OmitValueType{}, "")}},
		"values": {"values have names", agent("berlin", `[1]`), field.ErrorList{field.TypeInvalid(values, field.OmitValueType{}, "")}},
		"long":   {"they are kept in the hub", agent("berlin", `{"log":"`+strings.Repeat("a", 64<<10)+`"}`), field.ErrorList{field.TooLong(values, "", 64<<10)}},
		"itself": {"the hub has a chart of its own", agent("", ""), field.ErrorList{field.Forbidden(spec.Child("agent"), "")}},
		"seed": {"so has a seed", func() v1alpha1.KubernetesClusterSpec {
			s := agent("berlin", "")
			s.Role = v1alpha1.ClusterRoleSeed
			return s
		}(), field.ErrorList{field.Forbidden(spec.Child("agent"), "")}},
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
