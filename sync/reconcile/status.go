package reconcile

import (
	"reflect"
)

// restoreStatus copies the field Status of from, which is of the same type, into to, and
// the resource version with it.
func restoreStatus(to, from Object) {
	source := reflect.ValueOf(from.DeepCopyObject()).Elem().FieldByName("Status")
	reflect.ValueOf(to).Elem().FieldByName("Status").Set(source)
	to.SetResourceVersion(from.GetResourceVersion())
}

// clearStatus sets the field Status to its zero value.
func clearStatus(obj Object) {
	reflect.ValueOf(obj).Elem().FieldByName("Status").SetZero()
}
