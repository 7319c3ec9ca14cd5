package kubernetesapplicationresource

import (
	"time"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/deliver/delivery"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/reconcile"
)

// scope is the state of one pass.
type scope struct {
	// kar is the resource; its status is changed by report and conclude.
	kar *v1alpha1.KubernetesApplicationResource
	// owner is what delivered objects are marked with.
	owner apply.Owner
	// kc is set by lookUpCluster; nil if the resource is not scheduled, or if its KubernetesCluster
	// does not exist.
	kc *v1alpha1.KubernetesCluster
	// session is what is remembered between passes.
	session *session
	// state is that of the delivery; set by engage, submit and takeOut.
	state delivery.State

	// secrets, missing and barred are set by readSecrets, in the order of the spec: those to
	// copy, those that do not exist, and those that may not leave the hub.
	secrets         []secret
	missing, barred []string
	// disowned is set by readSecrets: the Secrets that may not leave the hub and that the spec no
	// longer names, but of which there may be a copy.
	disowned []string

	// showAfter is set by showStatus if there is a status to show and it is too early to do so.
	showAfter time.Duration

	// outcome is set by a step after which the pass ends.
	outcome *reconcile.Outcome
}

// pending ends a pass while a job is under way, whose end is an event. The status of the object, if
// known, is shown all the same.
func (s *scope) pending() reconcile.Outcome {
	s.showStatus(time.Now())
	return reconcile.Outcome{Pending: true, RequeueAfter: s.showAfter}
}

// object returns the identity of the templated object, in the namespace that it has if its kind has
// namespaces.
func (s *scope) object() manifest.ID {
	gvk := s.kar.Spec.Template.GroupVersionKind()
	return manifest.ID{
		Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind,
		Namespace: s.namespace(), Name: s.kar.Spec.Template.Metadata.Name,
	}
}

// sameObject reports whether id is that of the templated object, in whatever namespace.
func (s *scope) sameObject(id manifest.ID) bool {
	object := s.object()
	return id.Group == object.Group && id.Kind == object.Kind && id.Name == object.Name
}
