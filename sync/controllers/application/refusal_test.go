package application_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// refuse has the API server refuse every change of an Application of the namespace, for that reason,
// until the returned function is called.
func (w *world) refuse(app *v1alpha1.Application, reason metav1.StatusReason) (allow func()) {
	w.T.Helper()
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: w.Namespace},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: w.Namespace}},
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Update},
					Rule: admissionv1.Rule{
						APIGroups: []string{v1alpha1.Group}, APIVersions: []string{"v1alpha1"}, Resources: []string{"applications"},
					},
				}}},
			},
			Validations: []admissionv1.Validation{{Expression: "false", Message: "refused by a test", Reason: &reason}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: w.Namespace},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: w.Namespace, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
	w.Create(policy)
	w.Create(binding)
	refused := func() bool {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"tried":"yes"}}}`))
		return w.Client.Patch(w.T.Context(), app.DeepCopy(), patch, client.DryRunAll) != nil
	}
	require.True(w.T, w.Eventually(refused), "nothing is refused")
	return func() {
		w.T.Helper()
		require.NoError(w.T, w.Client.Delete(context.Background(), binding))
		require.True(w.T, w.Eventually(func() bool { return !refused() }), "it is still refused")
	}
}

// P14, C51: an Application that was written before admission refused it says what admission has
// against it, and owns nothing; when it is refused no more, it does.
func TestRefusal_isTold(t *testing.T) {
	for refusal, reason := range map[metav1.StatusReason]string{
		metav1.StatusReasonInvalid:   v1alpha1.InvalidSpecReason,
		metav1.StatusReasonForbidden: v1alpha1.ForbiddenReason,
	} {
		t.Run(string(refusal), func(t *testing.T) {
			w, stop := newStoppableAgentWorld(t, right("", "configmaps"))
			stop()
			settings := configMap(member("settings"))
			w.Create(settings)
			app := shop(named("ConfigMap", "settings"))
			w.Create(app)
			allow := w.refuse(app, refusal)
			w.startAgent()
			message := hub.AwaitReason(w.World, app, reason)
			assert.Contains(t, message, "write finalizers: ")
			assert.Contains(t, message, "refused by a test")
			assert.Equal(t, reason, reasonOf(app, v1alpha1.StalledCondition))
			assert.Equal(t, reason, reasonOf(app, v1alpha1.ComponentsReadyCondition))
			assert.Equal(t, app.Generation, app.Status.ObservedGeneration)
			require.True(t, w.Exists(settings, "settings"))
			assert.Empty(t, settings.OwnerReferences)

			allow()
			w.awaitOwned(settings, app, true)
			hub.AwaitReady(w.World, app)
		})
	}
}
