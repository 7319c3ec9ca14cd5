package ownership

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What is said of a right that is missing is the same for every object of the kind, so that it
// is not written again and again.
func TestDeniedError_isStable(t *testing.T) {
	text := func(object, namespace string) string {
		err := apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, object,
			fmt.Errorf("User %q cannot patch resource %q in API group %q in the namespace %q", "agent", "deployments", "apps", namespace))
		wrapped := fmt.Errorf("patch deployments.apps: %w", err)
		assert.True(t, lacksRight(wrapped))
		denied := deniedError{wrapped}
		assert.True(t, apierrors.IsForbidden(denied))
		return denied.Error()
	}
	assert.Equal(t, `patch deployments.apps: deployments.apps is forbidden: User "agent" cannot patch resource "deployments" in API group "apps"`, text("a", "x"))
	assert.Equal(t, text("a", "x"), text("b", "y"))

	quota := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New("exceeded quota"))
	assert.False(t, lacksRight(quota), "that is about one object")
}

// What API servers refuse for other reasons of rights is recognised, and comes with a way out.
func TestDeniedError_saysWhatToGrant(t *testing.T) {
	for name, tc := range map[string]struct{ resource, cause, want string }{
		"roles": {"roles",
			"user \"agent\" (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"get\"]}",
			"patch roles is forbidden: who changes it must hold what it grants: annotate it with kubernetes.io/application yourself, or grant the agent escalate and bind"},
		"owners": {"rolebindings", "cannot set an ownerRef on a resource you can't delete: , <nil>",
			"patch rolebindings is forbidden: who sets its ownerReferences must be allowed to delete it: grant the agent delete"},
		"finalizers": {"pods", "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>",
			"patch pods is forbidden: who makes it an Application's must be allowed to update applications/finalizers: grant the agent that"},
	} {
		t.Run(name, func(t *testing.T) {
			err := fmt.Errorf("patch %s: %w", tc.resource, apierrors.NewForbidden(
				schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: tc.resource}, "a", errors.New(tc.cause)))
			assert.True(t, lacksRight(err))
			assert.Equal(t, tc.want, deniedError{err}.Error())
		})
	}
}
