package webhooks_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// C9, C48: one duration that no client can decode would hold up every object of its kind, also where
// no webhook is registered yet. Where one is, the answer is the same: it names the field and the way out.
func TestSchema_refusesDurations(t *testing.T) {
	admin, ns := bare(t)
	c := admission(t)
	withWebhook, _ := c.admin(t)
	for name, tc := range map[string]struct {
		reason string
		kind   string
		value  string
		at     []string
		valid  bool
	}{
		"days":                  {"Go has no unit d", v1alpha1.ApplicationInstallationKind, "1d", []string{"spec", "deployOptions", "helm", "timeout"}, false},
		"days of the interval":  {"Go has no unit d", v1alpha1.ApplicationInstallationKind, "1d", []string{"spec", "reconciliationInterval"}, false},
		"days of a GitSync":     {"Go has no unit d", v1alpha1.GitSyncKind, "1d", []string{"spec", "interval"}, false},
		"days of a fetch":       {"Go has no unit d", v1alpha1.GitSyncKind, "1d", []string{"spec", "timeout"}, false},
		"no unit":               {"of what?", v1alpha1.GitSyncKind, "60", []string{"spec", "interval"}, false},
		"days of a definition":  {"Go has no unit d", v1alpha1.ApplicationDefinitionKind, "1d", []string{"spec", "defaultDeployOptions", "helm", "timeout"}, false},
		"too short":             {"nothing is done in that time", v1alpha1.ApplicationInstallationKind, "10ms", []string{"spec", "deployOptions", "helm", "timeout"}, false},
		"too short an interval": {"nothing is done in that time", v1alpha1.ApplicationInstallationKind, "10ms", []string{"spec", "reconciliationInterval"}, false},
		"timeout":               {"the default, written out", v1alpha1.ApplicationInstallationKind, "5m", []string{"spec", "deployOptions", "helm", "timeout"}, true},
		"interval":              {"a quarter of an hour", v1alpha1.ApplicationInstallationKind, "15m0s", []string{"spec", "reconciliationInterval"}, true},
		"never":                 {"the default, written out", v1alpha1.ApplicationInstallationKind, "0s", []string{"spec", "reconciliationInterval"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]map[string]any{
				v1alpha1.ApplicationInstallationKind: {"applicationRef": map[string]any{"name": "web"}},
				v1alpha1.ApplicationDefinitionKind:   {"versions": []any{map[string]any{"version": "1"}}},
				v1alpha1.GitSyncKind:                 {"url": "https://git.example.com/platform/catalog"},
			}[tc.kind]}}
			obj.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(tc.kind))
			if tc.kind != v1alpha1.ApplicationDefinitionKind {
				obj.SetNamespace(ns)
			}
			obj.SetName("web")
			obj.SetAnnotations(map[string]string{v1alpha1.CopyOfAnnotation: "hub"}) // so that a version needs no template
			require.NoError(t, unstructured.SetNestedField(obj.Object, tc.value, tc.at...))
			err := admin.Create(t.Context(), obj, client.DryRunAll)
			if tc.valid {
				require.NoError(t, err, tc.reason)
				return
			}
			require.True(t, apierrors.IsInvalid(err), "%s: %v", tc.reason, err)
			assert.Equal(t, strings.Join(tc.at, "."), causes(t, err), tc.reason)
			assert.ErrorContains(t, err, "1s or more, in hours, minutes and seconds: 24h, 1h30m, 90s")

			if obj.GetNamespace() != "" {
				obj.SetNamespace(c.Namespace(t))
			}
			assert.EqualError(t, withWebhook.Create(t.Context(), obj, client.DryRunAll), err.Error(), "with a webhook")
			apply := withWebhook.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner("kubectl"), client.DryRunAll)
			assert.EqualError(t, apply, err.Error(), "as kubectl apply does")
		})
	}
}

// C46, C59: what was let in before its definition has no namespace but in its status, and no other
// one can be filled in: the release would be left behind.
func TestSchema_keepsTheResolvedNamespace(t *testing.T) {
	admin, ns := bare(t)
	obj := newInstallation(ns, "web", "v1.0.0")
	require.NoError(t, admin.Create(t.Context(), obj))
	obj.Status.Application = &v1alpha1.ResolvedApplication{Name: "web", Version: "v1.0.0", Method: v1alpha1.MethodHelm, Namespace: "here"}
	require.NoError(t, admin.Status().Update(t.Context(), obj))

	for how, write := range writers {
		moved := obj.DeepCopy()
		moved.Spec.Namespace = &v1alpha1.TargetNamespace{Name: "there"}
		err := write(t, admin, obj, moved)
		require.True(t, apierrors.IsInvalid(err), "by %s: %v", how, err)
		assert.Equal(t, "spec.namespace.name", causes(t, err), how)
		assert.ErrorContains(t, err, "immutable", how)
	}
	obj.Spec.ApplicationRef.Version = "v1.1.0"
	require.NoError(t, admin.Update(t.Context(), obj), "an upgrade")
	obj.Spec.Namespace = &v1alpha1.TargetNamespace{Name: "here"}
	require.NoError(t, admin.Update(t.Context(), obj), "it says what was resolved")
	obj.Status.Application.Namespace = "there"
	require.NoError(t, admin.Status().Update(t.Context(), obj), "a status is written whatever it says")
}

// causes are the fields that an error names.
func causes(t *testing.T, err error) string {
	t.Helper()
	var status apierrors.APIStatus
	require.ErrorAs(t, err, &status)
	var fields []string
	for _, c := range status.Status().Details.Causes {
		fields = append(fields, c.Field)
	}
	return strings.Join(fields, ", ")
}
