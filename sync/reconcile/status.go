package reconcile

import (
	"reflect"
)

// Each of our kinds copies its status with a generated method of the status type.

// statusOf returns a copy of the field Status of obj.
func statusOf(obj Object) any {
	return copyOf(status(obj))
}

// setStatus writes a copy of what statusOf returned for an object of the same type.
func setStatus(obj Object, kept any) {
	status(obj).Set(reflect.ValueOf(copyOf(reflect.ValueOf(kept).Elem())).Elem())
}

// clearStatus sets the field Status to its zero value.
func clearStatus(obj Object) {
	status(obj).SetZero()
}

func status(obj Object) reflect.Value {
	return reflect.ValueOf(obj).Elem().FieldByName("Status")
}

// copyOf returns a pointer to a deep copy of a status.
func copyOf(status reflect.Value) any {
	made := reflect.New(status.Type())
	status.Addr().MethodByName("DeepCopyInto").Call([]reflect.Value{made})
	return made.Interface()
}
