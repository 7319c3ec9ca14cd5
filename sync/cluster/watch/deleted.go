package watch

import (
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Deleted returns the object that an informer reports as deleted, as it was last seen; nil if what
// it reports is no object. After an interruption of the watch, the last state seen need not be the
// last one that the object had.
func Deleted(reported any) client.Object {
	if missed, ok := reported.(cache.DeletedFinalStateUnknown); ok {
		reported = missed.Obj
	}
	object, _ := reported.(client.Object)
	return object
}
