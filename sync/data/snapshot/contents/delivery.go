package contents

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
)

// Delivery is what a snapshot keeps of the status of who delivered an application.
type Delivery struct {
	// GitSync that delivered the object, as NAMESPACE/NAME, and the revision that it had applied.
	GitSync     string `json:"gitSync,omitempty"`
	GitRevision string `json:"gitRevision,omitempty"`

	// Definition, its version and method, the target namespace and the revision of the source that an
	// ApplicationInstallation had installed.
	Definition string          `json:"definition,omitempty"`
	Version    string          `json:"version,omitempty"`
	Method     v1alpha1.Method `json:"method,omitempty"`
	Namespace  string          `json:"namespace,omitempty"`
	Revision   string          `json:"revision,omitempty"`

	// Release of Helm, its revision, its chart as `<name>-<version>`, and the digest of all that went
	// into it: chart, values, options.
	Release         string `json:"release,omitempty"`
	ReleaseRevision int32  `json:"releaseRevision,omitempty"`
	Chart           string `json:"chart,omitempty"`
	ReleaseDigest   string `json:"releaseDigest,omitempty"`
}

// DeliveryOf returns what the annotation apps.waybill.dev/delivery of a definition says; false if it has
// none, or one that is not valid.
func DeliveryOf(o metav1.Object) (Delivery, bool) {
	d := Delivery{}
	text, ok := o.GetAnnotations()[v1alpha1.DeliveryAnnotation]
	return d, ok && json.Unmarshal([]byte(text), &d) == nil
}

// findInstallation adds the ApplicationInstallation that delivers the application: that which the
// Application itself names or, if that has no owner, the only one that its components name.
func (s *survey) findInstallation(ctx context.Context) error {
	key, found := s.installedBy()
	if !found {
		return nil
	}
	name := id{installationKind, key.Name}
	if key.Namespace != s.namespace {
		s.leave(name, fmt.Sprintf("it delivers the application from namespace %q, and only objects of the application's namespace are followed", key.Namespace))
		return nil
	}
	if err := s.fetch(ctx, name, "installs the application", true); err != nil {
		return err
	}
	s.installation = s.objects[name].Unstructured
	if s.installation == nil {
		return nil
	}
	inst, err := typedInstallation(s.installation)
	if err != nil {
		return err
	}
	for _, from := range inst.Spec.ValuesFrom {
		reason := fmt.Sprintf("valuesFrom of ApplicationInstallation %q", inst.Name)
		if err := s.fetch(ctx, id{schema.GroupKind{Kind: from.Kind}, from.Name}, reason, from.Optional); err != nil {
			return err
		}
	}
	return nil
}

func typedInstallation(o *unstructured.Unstructured) (*v1alpha1.ApplicationInstallation, error) {
	inst := &v1alpha1.ApplicationInstallation{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, inst); err != nil {
		return nil, fmt.Errorf("read ApplicationInstallation %q in namespace %q: %w", o.GetName(), o.GetNamespace(), err)
	}
	return inst, nil
}

// installedBy returns the ApplicationInstallation that marks name.
func (s *survey) installedBy() (types.NamespacedName, bool) {
	if owner, ok := apply.OwnerOf(s.application); ok {
		return owner.ObjectKey(), owner.Kind == v1alpha1.ApplicationInstallationKind
	}
	var found types.NamespacedName
	for _, key := range s.sorted() {
		owner, ok := apply.OwnerOf(s.objects[key])
		if !ok || owner.Kind != v1alpha1.ApplicationInstallationKind {
			continue
		}
		if found.Name != "" && found != owner.ObjectKey() {
			return types.NamespacedName{}, false
		}
		found = owner.ObjectKey()
	}
	return found, found.Name != ""
}

// recordDeliveries writes annotation apps.waybill.dev/delivery: on the ApplicationInstallation, and on the
// Application if a GitSync delivers that.
func (s *survey) recordDeliveries(ctx context.Context) error {
	for _, o := range []*unstructured.Unstructured{s.application, s.installation} {
		if o == nil {
			continue
		}
		d := Delivery{}
		if err := s.readGitSync(ctx, o, &d); err != nil {
			return err
		}
		if o == s.installation {
			if err := d.readInstallation(o); err != nil {
				return err
			}
		}
		annotations := o.GetAnnotations()
		delete(annotations, v1alpha1.DeliveryAnnotation) // it is not of this delivery
		if d != (Delivery{}) {
			text, err := json.Marshal(d)
			if err != nil {
				return err
			}
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[v1alpha1.DeliveryAnnotation] = string(text)
		}
		o.SetAnnotations(annotations)
	}
	return nil
}

// readGitSync records the GitSync that delivers an object and, if it is in the same namespace, which
// revision it has applied. That may be in another cluster, which is not read.
func (s *survey) readGitSync(ctx context.Context, o *unstructured.Unstructured, d *Delivery) error {
	owner, ok := apply.OwnerOf(o)
	if !ok || owner.Kind != v1alpha1.GitSyncKind {
		return nil
	}
	d.GitSync = owner.ObjectKey().String()
	if owner.Namespace != s.namespace {
		return nil
	}
	sync, err := s.get(ctx, v1alpha1.GroupVersion.WithKind(v1alpha1.GitSyncKind).GroupKind(), owner.Name)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err), meta.IsNoMatchError(err):
		return nil
	case err != nil:
		return err
	}
	d.GitRevision, _, _ = unstructured.NestedString(sync.Object, "status", "revision")
	return nil
}

// readInstallation records what an ApplicationInstallation had installed.
func (d *Delivery) readInstallation(o *unstructured.Unstructured) error {
	inst, err := typedInstallation(o)
	if err != nil {
		return err
	}
	if a := inst.Status.Application; a != nil {
		d.Definition, d.Version, d.Method, d.Namespace, d.Revision = a.Name, a.Version, a.Method, a.Namespace, a.Revision
	}
	if r := inst.Status.Release; r != nil {
		d.Release, d.ReleaseRevision, d.Chart, d.ReleaseDigest = r.Name, r.Revision, r.Chart, r.Digest
	}
	return nil
}
