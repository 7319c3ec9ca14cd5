package reconcile

import (
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/sync/keyed"
)

// Key identifies one object of a kind, as opposed to an earlier or later one of the same name.
type Key struct {
	types.NamespacedName
	UID types.UID
}

// KeyOf returns the key of an object.
func KeyOf(obj client.Object) Key { return Key{client.ObjectKeyFromObject(obj), obj.GetUID()} }

// Sessions holds what a controller remembers of its objects between passes. The zero value is empty
// and ready to use. It is safe for concurrent use. The sessions themselves need no lock: only the
// pass of an object uses its session, and there is one at a time.
type Sessions[K comparable, S any] struct{ keyed.Map[K, *S] }
