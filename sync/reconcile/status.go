package reconcile

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"

	"waybill.dev/waybill/sync/excerpt"
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

// foldMessages makes the message of each condition one line. What is then as it was in before has not
// changed.
func foldMessages(before, obj Object) {
	conditions := obj.GetConditions()
	for i := range conditions {
		c := &conditions[i]
		line := excerpt.Line(c.Message)
		if line == c.Message {
			continue
		}
		c.Message = line
		was := meta.FindStatusCondition(before.GetConditions(), c.Type)
		if was != nil && was.Status == c.Status && was.Reason == c.Reason && was.Message == line {
			c.LastTransitionTime = was.LastTransitionTime
		}
	}
}

// keepGenerations has conditions that say the same as in before say it of the same generation: a pass that
// is not done says nothing new, and that alone is not worth a write.
func keepGenerations(before, obj Object) {
	conditions := obj.GetConditions()
	for i := range conditions {
		c := &conditions[i]
		was := meta.FindStatusCondition(before.GetConditions(), c.Type)
		if was != nil && was.Status == c.Status && was.Reason == c.Reason && was.Message == c.Message {
			c.ObservedGeneration = was.ObservedGeneration
		}
	}
}
