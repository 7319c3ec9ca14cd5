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
