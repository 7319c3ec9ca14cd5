package webhooks

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	kubernetesfake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"waybill.dev/waybill/api/v1alpha1"
)

// C35: a definition that cannot be looked up is not one that has no defaults.
func TestInstallation_isNotFilledWithoutAnAnswer(t *testing.T) {
	silent := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("no answer")
		},
	}).Build()
	rules := &applicationInstallations{definitions: &definitions{cached: silent, live: silent}}
	obj := &v1alpha1.ApplicationInstallation{}
	obj.Spec.ApplicationRef.Name = "web"
	err := rules.fill(t.Context(), obj, nil)
	require.True(t, apierrors.IsServiceUnavailable(err), "%v", err)
}

// C60: the account that all installations act as by a flag is checked like any other.
func TestInstallation_actsAsTheAccountOfTheFlag(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	def := &v1alpha1.ApplicationDefinition{}
	def.Name, def.Spec.RequireServiceAccount = "web", true
	nothing := kubernetesfake.NewClientset()
	nothing.PrependReactor("create", "subjectaccessreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &authorizationv1.SubjectAccessReview{}, nil
	})
	catalog := fake.NewClientBuilder().WithScheme(scheme).WithObjects(def).Build()
	rules := &applicationInstallations{
		access:         &access{reviews: nothing.AuthorizationV1().SubjectAccessReviews()},
		definitions:    &definitions{cached: catalog, live: catalog},
		defaultAccount: "deployer",
	}
	obj := &v1alpha1.ApplicationInstallation{}
	obj.Namespace, obj.Spec.ApplicationRef.Name = "team-a", "web"
	ctx := admission.NewContextWithRequest(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{}})
	_, err := rules.review(ctx, obj, nil)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, `impersonate serviceaccounts "deployer" in namespace "team-a"`)
}

// K52: an installation that has come to wait for itself can give up Orphan, as removal by force has it do, and nothing
// else.
func TestInstallation_givesUpOrphanInACycle(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	of := func(name, on string) *v1alpha1.ApplicationInstallation {
		i := &v1alpha1.ApplicationInstallation{}
		i.Namespace, i.Name, i.Spec.DeletionPolicy = "team-a", name, v1alpha1.InstallationOrphan
		i.Spec.DependsOn = []v1alpha1.InstallationDependency{{Name: on}}
		return i
	}
	old := of("web", "db")
	rules := &applicationInstallations{order: &order{cached: fake.NewClientBuilder().WithScheme(scheme).WithObjects(old, of("db", "web")).Build()}}
	for _, policy := range []v1alpha1.InstallationDeletionPolicy{v1alpha1.InstallationDelete, ""} {
		obj := old.DeepCopy()
		obj.Spec.DeletionPolicy = policy
		_, err := rules.reviewSpec(t.Context(), obj, old, nil)
		require.NoError(t, err, policy)
		obj.Spec.ServiceAccountName = "deployer"
		_, err = rules.reviewSpec(t.Context(), obj, old, nil)
		require.ErrorContains(t, err, "wait for itself", policy)
	}
	_, err := rules.reviewSpec(t.Context(), old, of("web", "db"), nil)
	require.True(t, apierrors.IsInvalid(err), "%v", err)
}
