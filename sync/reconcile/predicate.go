package reconcile

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"waybill.dev/waybill/api/v1alpha1"
)

// Changed passes the events that an object of our own kinds is reconciled for, whatever its kind:
// it is created or deleted, its generation changes, or the annotation reconcile-at asks for a pass.
// It filters out status writes, among them our own.
func Changed() predicate.Predicate {
	return predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool { return Requested(e.ObjectOld, e.ObjectNew) },
	})
}

// Requested reports whether a change of an object asks for a pass by the annotation reconcile-at.
// Taking the annotation away does, too.
func Requested(was, is client.Object) bool {
	return was.GetAnnotations()[v1alpha1.ReconcileAtAnnotation] != is.GetAnnotations()[v1alpha1.ReconcileAtAnnotation]
}
