package kubernetesapplication

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"waybill.dev/waybill/api/v1alpha1"
)

// templated has the keys of the labels and annotations that come from a template. Others belong to
// other writers, and stay.
type templated struct {
	Labels      []string `json:"labels,omitempty"`
	Annotations []string `json:"annotations,omitempty"`
}

// desired returns the resource as its template says it should be: a new one if live is nil. live is
// not changed, but the result shares with it what no template says: a caller that writes the result
// must copy it first.
func (s *scope) desired(live *v1alpha1.KubernetesApplicationResource, t *v1alpha1.ResourceTemplate) *v1alpha1.KubernetesApplicationResource {
	wanted := &v1alpha1.KubernetesApplicationResource{}
	if live == nil {
		wanted.Namespace, wanted.Name = s.app.Namespace, t.Metadata.Name
		controllerutil.AddFinalizer(wanted, v1alpha1.Finalizer)
	} else {
		*wanted = *live
		wanted.Labels, wanted.Annotations = maps.Clone(live.Labels), maps.Clone(live.Annotations)
		wanted.OwnerReferences = slices.Clone(live.OwnerReferences)
	}
	s.mark(wanted, t)
	wanted.OwnerReferences = append(slices.DeleteFunc(wanted.OwnerReferences, s.isSelf), s.reference())
	wanted.Spec.ClusterName = s.app.Spec.ClusterName
	wanted.Spec.Secrets = slices.Clone(t.Spec.Secrets)
	if !sameTemplate(wanted.Spec.Template, t.Spec.Template) {
		t.Spec.Template.DeepCopyInto(&wanted.Spec.Template)
	}
	return wanted
}

// mark sets the labels and annotations of the template, and our own.
func (s *scope) mark(wanted *v1alpha1.KubernetesApplicationResource, t *v1alpha1.ResourceTemplate) {
	var before templated
	// If this annotation is invalid, nothing is removed.
	_ = json.Unmarshal([]byte(wanted.Annotations[v1alpha1.TemplatedAnnotation]), &before)
	now := templated{
		Labels:      slices.Sorted(maps.Keys(t.Metadata.Labels)),
		Annotations: slices.Sorted(maps.Keys(t.Metadata.Annotations)),
	}
	wanted.Labels = replace(wanted.Labels, before.Labels, t.Metadata.Labels)
	wanted.Labels[v1alpha1.KubernetesApplicationLabel] = s.app.Name
	wanted.Annotations = replace(wanted.Annotations, before.Annotations, t.Metadata.Annotations)
	wanted.Annotations[v1alpha1.OwnerAnnotation] = s.owner
	if note, err := json.Marshal(now); err == nil {
		wanted.Annotations[v1alpha1.TemplatedAnnotation] = string(note)
	}
	if at, ok := s.app.Annotations[v1alpha1.ReconcileAtAnnotation]; ok && at != s.app.Status.LastHandledReconcileAt {
		wanted.Annotations[v1alpha1.ReconcileAtAnnotation] = at
	}
}

// replace deletes the keys out from a map, which it changes, and adds put. It returns the map,
// which is a new one if there was none.
func replace(in map[string]string, out []string, put map[string]string) map[string]string {
	if in == nil {
		in = map[string]string{}
	}
	for _, key := range out {
		delete(in, key)
	}
	maps.Copy(in, put)
	return in
}

// reference makes the application the controller of a resource.
func (s *scope) reference() metav1.OwnerReference {
	return *metav1.NewControllerRef(s.app, v1alpha1.GroupVersion.WithKind(v1alpha1.KubernetesApplicationKind))
}

// isSelf reports whether a reference is to the application, or to an earlier one of its name.
func (s *scope) isSelf(ref metav1.OwnerReference) bool {
	return ref.UID == s.app.UID || s.isEarlierSelf(ref)
}

// sameTemplate reports whether two manifests are equal, however they are written.
func sameTemplate(a, b v1alpha1.ObjectTemplate) bool {
	if bytes.Equal(a.Raw, b.Raw) {
		return true
	}
	one, errOne := a.Object()
	other, errOther := b.Object()
	return errOne == nil && errOther == nil && equality.Semantic.DeepEqual(one.Object, other.Object)
}
