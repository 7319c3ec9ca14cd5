package ownership

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/controllers/application/tracker"
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
			"patch roles is forbidden: changing it requires the permissions that it grants: annotate it with kubernetes.io/application yourself, or grant the agent escalate and bind"},
		"owners": {"rolebindings", "cannot set an ownerRef on a resource you can't delete: , <nil>",
			"patch rolebindings is forbidden: setting its ownerReferences requires permission to delete it: grant the agent delete"},
		"finalizers": {"pods", "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>",
			"patch pods is forbidden: setting its ownerReferences requires permission to update applications/finalizers: grant it to the agent"},
	} {
		t.Run(name, func(t *testing.T) {
			err := fmt.Errorf("patch %s: %w", tc.resource, apierrors.NewForbidden(
				schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: tc.resource}, "a", errors.New(tc.cause)))
			assert.True(t, lacksRight(err))
			assert.Equal(t, tc.want, deniedError{err}.Error())
		})
	}
}

// A right on a kind in a namespace says nothing of another namespace, and what is refused of one
// object says nothing of another one.
func TestKeeper_believesRefusals(t *testing.T) {
	refused := func(cause string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "roles"}, "a", errors.New(cause))
	}
	role := func(namespace, name string) tracker.Ref {
		return tracker.Ref{GroupKind: schema.GroupKind{Kind: "Role"}, NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
	}
	for name, tc := range map[string]struct {
		cause  string
		beside bool
	}{
		"right":      {`User "agent" cannot patch resource "roles"`, true},
		"escalation": {`user "agent" is attempting to grant RBAC permissions not currently held`, false},
		"ownerRef":   {"cannot set an ownerRef on a resource you can't delete: , <nil>", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := New(Options{})
				defer k.queue.ShutDown()
				k.deny(role("one", "a"), refused(tc.cause))
				assert.Equal(t, tc.beside, k.denial(placeOf(role("one", "b"))).err != nil, "beside it")
				assert.NoError(t, k.denial(placeOf(role("two", "a"))).err, "in another namespace")
				<-time.After(believed + time.Minute)
				assert.NoError(t, k.denial(placeOf(role("one", "b"))).err, "after a while")
				assert.Equal(t, 1, k.queue.Len(), "the object is tried again")
			})
		})
	}
}

// C42: a reference that is being written is known to be on its way, from when it was decided; an
// Application that is deleted gets none any more.
func TestKeeper_countsWhatIsOnItsWay(t *testing.T) {
	owners := NewOwners()
	web := app(t, "web", nil)
	owners.Set(web)
	owners.Record(web.UID, sets.New(configMaps))
	var told []types.NamespacedName
	k := New(Options{Owners: owners, Changed: func(key types.NamespacedName) { told = append(told, key) }})
	defer k.queue.ShutDown()
	assert.False(t, k.Giving(web.UID))
	first, second := k.decide(object(nil)), k.decide(object(nil))
	owners.Set(app(t, "web", func(a *v1alpha1.Application) { a.DeletionTimestamp = &metav1.Time{Time: time.Now()} }))
	assert.Nil(t, k.decide(object(nil)).given)
	k.given(first.given)
	assert.True(t, k.Giving(web.UID), "one of two")
	assert.Empty(t, told)
	k.given(second.given)
	assert.False(t, k.Giving(web.UID))
	assert.Equal(t, []types.NamespacedName{web.Key}, told, "it waits for that")

	owners.Set(web)
	k.given(k.decide(object(nil)).given)
	assert.Len(t, told, 1, "no caller waits")
	assert.Empty(t, k.giving)
	assert.Empty(t, k.awaited)
}

// A controller that undoes what is written causes no endless conflict.
func TestKeeper_calmsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := New(Options{})
		defer k.queue.ShutDown()
		ref := object(nil).Ref
		for range calm {
			assert.Zero(t, k.undone(ref))
			k.count(ref)
		}
		<-time.After(period / 4)
		assert.Equal(t, period*3/4, k.undone(ref), "the rest of the period")
		<-time.After(period)
		assert.Zero(t, k.undone(ref))
		k.count(ref)
		assert.Zero(t, k.undone(ref), "counted anew")
	})
}
