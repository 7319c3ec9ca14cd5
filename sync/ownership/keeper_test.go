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
