package webhooks

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/webhooks/inject"
)

// +kubebuilder:rbac:groups=apps.waybill.dev,resources=applicationdefinitions,verbs=get;list;watch

// definitions finds ApplicationDefinitions: those of the hub, or its copies in a user cluster. It reads from a cache, and asks the API server only for what the cache does not have.
type definitions struct {
	cached client.Reader
	live   client.Reader
}

// get returns the definition from the cache, or from the API server if the cache lacks it or lacks
// that version of it: it may just have been written. An empty version matches any. get returns nil
// without an error if there is no such definition. The result may belong to the cache: do not
// modify it.
func (d *definitions) get(ctx context.Context, name, version string) (*v1alpha1.ApplicationDefinition, error) {
	key := client.ObjectKey{Name: name}
	def := &v1alpha1.ApplicationDefinition{}
	if err := d.cached.Get(ctx, key, def); err == nil && (version == "" || def.GetVersion(version) != nil) {
		return def, nil
	}
	def = &v1alpha1.ApplicationDefinition{}
	switch err := d.live.Get(ctx, key, def); {
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get applicationdefinition %s: %w", name, err)
	}
	return def, nil
}

// peek returns the definition from the cache, or nil if it is not there. It belongs to the cache:
// do not modify it.
func (d *definitions) peek(ctx context.Context, name string) *v1alpha1.ApplicationDefinition {
	def := &v1alpha1.ApplicationDefinition{}
	if err := d.cached.Get(ctx, client.ObjectKey{Name: name}, def); err != nil {
		return nil
	}
	return def
}

// trim drops from a cached definition what admission never reads: templates with their values, and
// pictures; and from an installation all but what it depends on and is of. It trims Applications as well;
// other objects stay as they are.
func trim(obj any) (any, error) {
	if inst, ok := obj.(*v1alpha1.ApplicationInstallation); ok {
		inst.ManagedFields, inst.Annotations, inst.Labels = nil, nil, nil
		inst.Spec = v1alpha1.ApplicationInstallationSpec{ApplicationRef: inst.Spec.ApplicationRef, DependsOn: inst.Spec.DependsOn}
		inst.Status = v1alpha1.ApplicationInstallationStatus{Application: inst.Status.Application}
		return inst, nil
	}
	def, ok := obj.(*v1alpha1.ApplicationDefinition)
	if !ok {
		return inject.Trim(obj)
	}
	def.ManagedFields = nil
	def.Spec.Logo, def.Spec.DefaultValues = nil, nil
	for i := range def.Spec.Versions {
		def.Spec.Versions[i].Template = nil
	}
	return def, nil
}
