package release_test

import (
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/test/env"
)

// refusal is what the API server refuses in a namespace, as a policy engine would: an operation on the given resources of the core
// group where the expression is true. For an update, patch is one that it refuses.
type refusal struct {
	operation       admissionv1.OperationType
	resource, where string
	patch           string
}

var (
	deletes = refusal{operation: admissionv1.Delete, resource: "configmaps", where: "true"}
	records = refusal{operation: admissionv1.Create, resource: "secrets", where: "true"}
)

// greeting is to set the greeting of a ConfigMap to that text.
func greeting(text string) refusal {
	return refusal{
		operation: admissionv1.Update, resource: "configmaps", where: "has(object.data) && 'greeting' in object.data && object.data.greeting == '" + text + "'",
		patch: `{"data":{"greeting":"` + text + `"}}`,
	}
}

// refuse has the API server refuse that, until the returned function is called.
func (w *world) refuse(r refusal) (allow func()) {
	w.Helper()
	admission := w.client.AdmissionregistrationV1()
	deny := admissionv1.Deny
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: w.namespace},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: w.namespace}},
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{r.operation},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{r.resource}},
				}}},
			},
			Validations: []admissionv1.Validation{{Expression: "!(" + r.where + ")", Message: "kept by a test", Reason: ptr.To(metav1.StatusReasonForbidden)}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: w.namespace},
		Spec:       admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: w.namespace, ValidationActions: []admissionv1.ValidationAction{deny}},
	}
	refused := w.probe(r)
	_, err := admission.ValidatingAdmissionPolicies().Create(w.Context(), policy, metav1.CreateOptions{})
	require.NoError(w, err)
	_, err = admission.ValidatingAdmissionPolicyBindings().Create(w.Context(), binding, metav1.CreateOptions{})
	require.NoError(w, err)
	// The API server reads policies from a cache.
	require.Eventually(w, refused, env.Limit, 20*time.Millisecond)
	return func() {
		w.Helper()
		require.NoError(w, admission.ValidatingAdmissionPolicyBindings().Delete(w.Context(), w.namespace, metav1.DeleteOptions{}))
		require.NoError(w, admission.ValidatingAdmissionPolicies().Delete(w.Context(), w.namespace, metav1.DeleteOptions{}))
		require.Eventually(w, func() bool { return !refused() }, env.Limit, 20*time.Millisecond)
	}
}

// probe returns a function that reports whether the API server refuses that now.
func (w *world) probe(r refusal) func() bool {
	w.Helper()
	client, err := dynamic.NewForConfig(w.cluster.RESTConfig())
	require.NoError(w, err)
	objects := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: r.resource}).Namespace(w.namespace)
	kind := map[string]string{"configmaps": "ConfigMap", "secrets": "Secret"}[r.resource]
	probe := &unstructured.Unstructured{Object: values{"apiVersion": "v1", "kind": kind, "metadata": values{"name": "probe"}}}
	if r.operation != admissionv1.Create {
		_, err = objects.Create(w.Context(), probe, metav1.CreateOptions{})
		require.NoError(w, err)
	}
	dryRun := []string{metav1.DryRunAll}
	return func() bool {
		var err error
		switch r.operation {
		case admissionv1.Create:
			_, err = objects.Create(w.Context(), probe, metav1.CreateOptions{DryRun: dryRun})
		case admissionv1.Delete:
			err = objects.Delete(w.Context(), "probe", metav1.DeleteOptions{DryRun: dryRun})
		default:
			_, err = objects.Patch(w.Context(), "probe", types.MergePatchType, []byte(r.patch), metav1.PatchOptions{DryRun: dryRun})
		}
		return apierrors.IsForbidden(err)
	}
}
