package webhooks

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"waybill.dev/waybill/api/v1alpha1"
)

// C50: whether there is a right to a dry run may not be known. That there was none is reported.
func TestPodDryRun_withoutAnAnswer(t *testing.T) {
	app := &v1alpha1.Application{}
	app.Spec.HealthCheck = &v1alpha1.ApplicationHealthCheck{Template: runtime.RawExtension{
		Raw: []byte(`{"spec": {"containers": [{"name": "check", "image": "curl", "readinessProbe": {"exec": {"command": ["true"]}}}]}}`),
	}}
	for name, tc := range map[string]struct {
		reason string
		err    error
		want   []string
	}{
		"no right":  {"whoever installs Waybill decides that", nil, nil},
		"no answer": {"that is nobody's decision", errors.New("no answer"), []string{"spec.healthCheck.template could not be validated by a dry run: review access: no answer"}},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			client.PrependReactor("create", "selfsubjectaccessreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, &authorizationv1.SelfSubjectAccessReview{}, tc.err
			})
			warned, errs := (&podDryRun{client: client}).try(t.Context(), app)
			require.Empty(t, errs)
			assert.Equal(t, tc.want, []string(warned), tc.reason)
		})
	}
}
