package hold_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/hold"
)

func held(namespace, name, wanted string) v1alpha1.Hold {
	return v1alpha1.Hold{ObjectReference: v1alpha1.ObjectReference{Kind: "ConfigMap", Namespace: namespace, Name: name}, Rollback: "back", Wanted: wanted}
}

func TestParse_onlyNames(t *testing.T) {
	for value, want := range map[string]types.NamespacedName{
		"shop/back": {Namespace: "shop", Name: "back"}, "": {}, "shop": {}, "/back": {}, "shop/": {}, "a/b/c": {},
	} {
		assert.Equal(t, want, hold.Parse(value), value)
	}
}

// C65: a rollback holds what its status lists, in its own namespace, until it is deleted.
func TestHolds_whatTheStatusLists(t *testing.T) {
	now := metav1.Now()
	web := v1alpha1.ObjectReference{Kind: "ConfigMap", Namespace: "shop", Name: "web"}
	theirs := v1alpha1.ObjectReference{Kind: "ConfigMap", Namespace: "bank", Name: "web"}
	everywhere := v1alpha1.ObjectReference{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "web"}
	r := &v1alpha1.ApplicationRollback{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "back"}}
	for _, ref := range []v1alpha1.ObjectReference{web, theirs, everywhere} {
		r.Status.Held = append(r.Status.Held, v1alpha1.HeldObject{ObjectReference: ref})
	}
	assert.NotNil(t, hold.Holds(r, web))
	assert.Nil(t, hold.Holds(r, v1alpha1.ObjectReference{Kind: "Secret", Namespace: "shop", Name: "web"}), "it is not listed")
	assert.Nil(t, hold.Holds(r, theirs), "it is in another namespace")
	assert.Nil(t, hold.Holds(r, everywhere), "it is in no namespace")
	r.DeletionTimestamp = &now
	assert.Nil(t, hold.Holds(r, web), "the rollback is being deleted")
	r.Status.Phase = v1alpha1.RollbackReverting
	assert.NotNil(t, hold.Holds(r, web), "it still puts the object back")
}

func TestMessage_namesWhatIsHeld(t *testing.T) {
	assert.Empty(t, hold.Message([]v1alpha1.Hold{held("shop", "web", "")}), "something else is wanted of it")
	far := held("shop", "a", "x")
	far.Cluster = "berlin"
	assert.Equal(t, "; ApplicationRollback shop/back holds ConfigMap shop/a, ConfigMap shop/b; ApplicationRollback shop/back in cluster berlin holds ConfigMap shop/a",
		hold.Note([]v1alpha1.Hold{held("shop", "b", "x"), far, held("shop", "a", "x")}))
}
