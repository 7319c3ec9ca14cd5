package cluster

import (
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"waybill.dev/waybill/api/v1alpha1"
)

// What keeping an object, an entry of a map or an element of a list takes beside the text in it.
const (
	objectWeight = 512
	entryWeight  = 48
)

// weightOf estimates how much memory it takes to keep an object that is watched: of what has no Go type
// of its own, watches keep little more than metadata.
func weightOf(object runtime.Object) int64 {
	switch o := object.(type) {
	case *metav1.PartialObjectMetadata:
		return weightOfMetadata(&o.ObjectMeta)
	case *v1alpha1.ApplicationDefinition:
		kept := weightOfValue(reflect.ValueOf(o.Status.UsedBy)) + weightOfValue(reflect.ValueOf(o.Status.Unprovided))
		return weightOfMetadata(&o.ObjectMeta) + kept // the rest is dropped
	case runtime.Unstructured:
		content, _ := o.UnstructuredContent()["metadata"].(map[string]any)
		return objectWeight + weightOfJSON(content)
	}
	return objectWeight + weightOfValue(reflect.ValueOf(object))
}

func weightOfMetadata(m *metav1.ObjectMeta) int64 {
	weight := objectWeight + len(m.Name) + len(m.Namespace) + len(m.GenerateName) + len(m.UID) + len(m.ResourceVersion)
	for _, texts := range []map[string]string{m.Labels, m.Annotations} {
		for key, text := range texts {
			weight += entryWeight + len(key) + len(text)
		}
	}
	weight -= len(m.Annotations[corev1.LastAppliedConfigAnnotation])
	for i := range m.OwnerReferences {
		o := &m.OwnerReferences[i]
		weight += 2*entryWeight + len(o.APIVersion) + len(o.Kind) + len(o.Name) + len(o.UID)
	}
	for _, finalizer := range m.Finalizers {
		weight += entryWeight + len(finalizer)
	}
	return int64(weight)
}

// weightOfJSON is the weight of what JSON becomes, except what is dropped from metadata.
func weightOfJSON(value any) int64 {
	switch v := value.(type) {
	case string:
		return int64(len(v))
	case map[string]any:
		var weight int64
		for key, inner := range v {
			if key != "managedFields" && key != corev1.LastAppliedConfigAnnotation {
				weight += entryWeight + int64(len(key)) + weightOfJSON(inner)
			}
		}
		return weight
	case []any:
		var weight int64
		for _, inner := range v {
			weight += entryWeight + weightOfJSON(inner)
		}
		return weight
	}
	return 0
}

var (
	// managedFields are dropped from what is kept.
	managedFields = reflect.TypeFor[[]metav1.ManagedFieldsEntry]()
	// moment refers to a time zone, which all share.
	moment = reflect.TypeFor[time.Time]()
)

// weightOfValue is the weight of what a value refers to, beside its own size.
func weightOfValue(v reflect.Value) int64 {
	switch v.Kind() {
	case reflect.String:
		return int64(v.Len())
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return 0
		}
		return int64(v.Elem().Type().Size()) + weightOfValue(v.Elem())
	case reflect.Struct:
		var weight int64
		for i := 0; i < v.NumField() && v.Type() != moment; i++ {
			weight += weightOfValue(v.Field(i))
		}
		return weight
	case reflect.Slice:
		if v.Type() == managedFields {
			return 0
		}
		weight := int64(v.Len()) * int64(v.Type().Elem().Size())
		for i := 0; i < v.Len() && v.Type().Elem().Kind() != reflect.Uint8; i++ {
			weight += weightOfValue(v.Index(i))
		}
		return weight
	case reflect.Map:
		var weight int64
		for entries := v.MapRange(); entries.Next(); {
			weight += entryWeight + weightOfValue(entries.Key()) + weightOfValue(entries.Value())
		}
		return weight
	}
	return 0
}
