package application

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
)

// C42: an Application that is deleted with --cascade=orphan owns nothing from then on, also when
// the garbage collector has done what it could, and taken its finalizer off.
func TestIndex_orphaningStays(t *testing.T) {
	x := newIndex()
	key := types.NamespacedName{Namespace: "blog", Name: "shop"}
	app := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "first"}}
	app.Spec.Selector = &metav1.LabelSelector{}
	ownership := func(version string, finalizers ...string) v1alpha1.Ownership {
		app.ResourceVersion, app.Finalizers = version, append(finalizers, v1alpha1.OwnershipFinalizer)
		_, after := x.put(key, app.DeepCopy())
		require.NotNil(t, after.member)
		return after.member.Ownership
	}
	assert.Equal(t, v1alpha1.OwnershipOwn, ownership("1"))
	app.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	assert.Equal(t, v1alpha1.OwnershipOwn, ownership("2"), "its components go with it")
	assert.Equal(t, v1alpha1.OwnershipObserve, ownership("3", metav1.FinalizerOrphanDependents), "deleted once more, with other options")
	assert.Equal(t, v1alpha1.OwnershipObserve, ownership("4"), "the garbage collector is done")
	app.UID, app.DeletionTimestamp = "second", nil
	assert.Equal(t, v1alpha1.OwnershipOwn, ownership("5"), "another one")
}
