package validation_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
)

// K35, K36, C59
func TestDefaultApplicationInstallation(t *testing.T) {
	bare := func(change func(*v1alpha1.ApplicationInstallation)) *v1alpha1.ApplicationInstallation {
		return installation(func(i *v1alpha1.ApplicationInstallation) {
			i.Spec.Namespace, i.Spec.ApplicationRef.Version = nil, ""
			if change != nil {
				change(i)
			}
		})
	}
	options := &v1alpha1.DeployOptions{Helm: &v1alpha1.HelmDeployOptions{Wait: true}}
	def := definition(func(d *v1alpha1.ApplicationDefinition) {
		d.Spec.DefaultVersion = "v1.1.0"
		d.Spec.DefaultNamespace = &v1alpha1.TargetNamespace{Name: "web", Create: true}
		d.Spec.DefaultDeployOptions = options
	})
	plain := definition(nil)
	resolved := bare(func(i *v1alpha1.ApplicationInstallation) {
		i.Status.Application = &v1alpha1.ResolvedApplication{Name: installation(nil).Spec.ApplicationRef.Name, Version: "v0.9.0", Namespace: "settled"}
	})
	for name, tc := range map[string]struct {
		reason    string
		obj, old  *v1alpha1.ApplicationInstallation
		def       *v1alpha1.ApplicationDefinition
		version   string
		namespace string // empty: none
		options   *v1alpha1.DeployOptions
	}{
		"created":               {"the definition has all defaults", bare(nil), nil, def, "v1.1.0", "web", options},
		"created, no defaults":  {"its own namespace is left", bare(nil), nil, plain, "", "team-a", nil},
		"created, not known":    {"the definition may have a default that is to come", bare(nil), nil, nil, "", "", nil},
		"created in full":       {"what the user says counts", installation(withHelmOptions(v1alpha1.HelmDeployOptions{})), nil, def, "v1.0.0", "team-a", &v1alpha1.DeployOptions{Helm: &v1alpha1.HelmDeployOptions{}}},
		"updated":               {"server-side apply drops what its manager no longer sends", bare(nil), installation(nil), def, "v1.0.0", "team-a", options},
		"updated, not known":    {"the copy of the definition is gone", bare(nil), installation(withHelmOptions(*options.Helm)), nil, "v1.0.0", "team-a", options},
		"updated, resolved":     {"a default that changed later moves nothing", bare(nil), resolved, def, "v0.9.0", "settled", options},
		"updated, never filled": {"the definition came later", bare(nil), bare(nil), def, "v1.1.0", "web", options},
	} {
		t.Run(name, func(t *testing.T) {
			obj := tc.obj.DeepCopy()
			validation.DefaultApplicationInstallation(obj, tc.old, tc.def)
			assert.Equal(t, tc.version, obj.Spec.ApplicationRef.Version, tc.reason)
			assert.Equal(t, tc.options, obj.Spec.DeployOptions, tc.reason)
			if tc.namespace == "" {
				assert.Nil(t, obj.Spec.Namespace, tc.reason)
			} else if assert.NotNil(t, obj.Spec.Namespace, tc.reason) {
				assert.Equal(t, tc.namespace, obj.Spec.Namespace.Name, tc.reason)
			}

			assert.Empty(t, validation.ValidateApplicationInstallation(obj, tc.old), "what is defaulted is valid")
			again := obj.DeepCopy()
			validation.DefaultApplicationInstallation(again, tc.old, tc.def)
			assert.Equal(t, obj, again, "defaulting is idempotent")
		})
	}
}

// The definition comes from a cache that others share.
func TestDefaultApplicationInstallation_sharesNothing(t *testing.T) {
	def := definition(func(d *v1alpha1.ApplicationDefinition) {
		d.Spec.DefaultNamespace = &v1alpha1.TargetNamespace{Name: "web", Labels: map[string]string{"a": "b"}}
	})
	obj := installation(func(i *v1alpha1.ApplicationInstallation) { i.Spec.Namespace = nil })
	validation.DefaultApplicationInstallation(obj, nil, def)
	obj.Spec.Namespace.Labels["a"] = "c"
	assert.Equal(t, "b", def.Spec.DefaultNamespace.Labels["a"])
}
