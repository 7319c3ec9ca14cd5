package webhooks

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

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
