package kubernetesapplication

import (
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
)

// W45: what an application is looked at for, of all that happens to its resources.
func TestConcerns_whatAnApplicationReads(t *testing.T) {
	now := metav1.Now()
	for name, tc := range map[string]struct {
		reason string
		change func(*v1alpha1.KubernetesApplicationResource)
		want   bool
	}{
		"nothing": {"a resync", func(*v1alpha1.KubernetesApplicationResource) {}, false},
		"remote": {"the object's own status, which may change at any rate", func(k *v1alpha1.KubernetesApplicationResource) {
			k.Status.Remote = &apiextensionsv1.JSON{Raw: []byte(`{"replicas":3}`)}
		}, false},
		"time of a condition": {"it says the same", func(k *v1alpha1.KubernetesApplicationResource) {
			k.Status.Conditions[0].LastTransitionTime = metav1.NewTime(now.AddDate(0, 0, 1))
		}, false},
		"spec":       {"the template is compared", func(k *v1alpha1.KubernetesApplicationResource) { k.Generation++ }, true},
		"label":      {"labels are compared", func(k *v1alpha1.KubernetesApplicationResource) { k.Labels = map[string]string{"a": "b"} }, true},
		"annotation": {"marks are compared", func(k *v1alpha1.KubernetesApplicationResource) { k.Annotations = map[string]string{"a": "b"} }, true},
		"owner": {"it is ours or not", func(k *v1alpha1.KubernetesApplicationResource) {
			k.OwnerReferences = []metav1.OwnerReference{{UID: "2"}}
		}, true},
		"deletion": {"it is to be made anew", func(k *v1alpha1.KubernetesApplicationResource) { k.DeletionTimestamp = &now }, true},
		"state":    {"it is counted", func(k *v1alpha1.KubernetesApplicationResource) { k.Status.State = v1alpha1.StateFailed }, true},
		"observed": {"it is counted", func(k *v1alpha1.KubernetesApplicationResource) { k.Status.ObservedGeneration++ }, true},
		"message":  {"it is repeated", func(k *v1alpha1.KubernetesApplicationResource) { k.Status.Conditions[0].Message = "other" }, true},
		"ready comes": {"it is repeated", func(k *v1alpha1.KubernetesApplicationResource) {
			conditions.MarkFalse(k, v1alpha1.ReadyCondition, v1alpha1.ApplyFailedReason, "refused")
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			was := &v1alpha1.KubernetesApplicationResource{}
			conditions.MarkTrue(was, v1alpha1.SubmittedCondition, v1alpha1.SucceededReason, "submitted")
			is := was.DeepCopy()
			tc.change(is)
			assert.Equal(t, tc.want, concerns(was, is), tc.reason)
		})
	}
}
