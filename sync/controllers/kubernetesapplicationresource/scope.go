package kubernetesapplicationresource

import (
	"time"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/apply"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/reconcile"
)

// scope is the state of one pass.
type scope struct {
	// kar is the resource; its status is changed by report and conclude.
	kar *v1alpha1.KubernetesApplicationResource
	// owner is what delivered objects are marked with.
	owner apply.Owner
	// kc is set by lookUpCluster; nil where the resource is not scheduled, or its
	// KubernetesCluster does not exist.
	kc *v1alpha1.KubernetesCluster
	// session is what is remembered between passes.
	session *session

	// secrets, missing and barred are set by readSecrets, in the order of the spec: those to
	// copy, those that do not exist, and those that may not leave the hub.
	secrets         []secret
	missing, barred []string
	// digest of everything that is to be delivered, or deleted, is set by submit and takeOut.
	digest string

	// showAfter is set by showStatus where there is a status to show, and it is too early.
	showAfter time.Duration

	// outcome is set by a step after which the pass ends.
	outcome *reconcile.Outcome
	// released is set by remove when nothing of ours is left.
	released bool
}

// pending ends a pass while a job is under way: its end is an event. What is known of the status
// of the object is shown all the same.
func (s *scope) pending() reconcile.Outcome {
	s.showStatus(time.Now())
	return reconcile.Outcome{Pending: true, RequeueAfter: s.showAfter}
}

// requeueAfter is the time until the next try; zero where none is to come. To be asked once
// a try that is due was made.
func (s *scope) requeueAfter() time.Duration {
	if s.session.retryAt.IsZero() {
		return 0
	}
	return max(time.Until(s.session.retryAt), time.Millisecond)
}

// object is the identity of the templated object, in the namespace that it has if its kind
// has namespaces (W27, C12).
func (s *scope) object() manifest.ID {
	gvk := s.kar.Spec.Template.GroupVersionKind()
	return manifest.ID{
		Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind,
		Namespace: s.namespace(), Name: s.kar.Spec.Template.Metadata.Name,
	}
}

// sameObject says whether id is that of the templated object, in whatever namespace.
func (s *scope) sameObject(id manifest.ID) bool {
	object := s.object()
	return id.Group == object.Group && id.Kind == object.Kind && id.Name == object.Name
}
