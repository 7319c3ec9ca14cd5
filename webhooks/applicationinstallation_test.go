package webhooks_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// K35, K36, C59
func TestInstallation_isDefaultedFromItsDefinition(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	ns := c.Namespace(t)
	def := definition(t, admin, func(d *v1alpha1.ApplicationDefinition) {
		d.Spec.DefaultVersion = "v1.1.0"
		d.Spec.DefaultNamespace = &v1alpha1.TargetNamespace{Name: "web", Create: true}
		d.Spec.DefaultDeployOptions = &v1alpha1.DeployOptions{Helm: &v1alpha1.HelmDeployOptions{HistoryLimit: 3}}
	})
	obj := newInstallation(ns, def.Name, "")
	require.NoError(t, admin.Create(t.Context(), obj))
	assert.Equal(t, "v1.1.0", obj.Spec.ApplicationRef.Version)
	assert.Equal(t, def.Spec.DefaultNamespace, obj.Spec.Namespace)
	assert.Equal(t, def.Spec.DefaultDeployOptions, obj.Spec.DeployOptions)
}

// K36: without a default it goes where the installation is.
func TestInstallation_isDefaultedToItsOwnNamespace(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	ns := c.Namespace(t)
	obj := newInstallation(ns, definition(t, admin, nil).Name, "v1.0.0")
	require.NoError(t, admin.Create(t.Context(), obj))
	assert.Equal(t, &v1alpha1.TargetNamespace{Name: ns}, obj.Spec.Namespace)

	raw := &unstructured.Unstructured{}
	raw.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.ApplicationInstallationKind))
	require.NoError(t, admin.Get(t.Context(), client.ObjectKeyFromObject(obj), raw))
	assert.Equal(t, map[string]any{
		"applicationRef": map[string]any{"name": obj.Spec.ApplicationRef.Name, "version": "v1.0.0"},
		"namespace":      map[string]any{"name": ns},
	}, raw.Object["spec"], "nothing else is written into it")
}

// P10: whatever is written is kept as it was written; only what is missing is filled in.
func TestInstallation_keepsWhatIsWritten(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	def := definition(t, admin, func(d *v1alpha1.ApplicationDefinition) { d.Spec.DefaultVersion = "v1.0.0" })
	spec := map[string]any{
		"applicationRef":         map[string]any{"name": def.Name},
		"reconciliationInterval": "10m",
		"values":                 map[string]any{"replicas": int64(2), "gone": nil, "empty": map[string]any{}},
		"deployOptions":          map[string]any{"helm": map[string]any{"timeout": "2m", "wait": false}},
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.ApplicationInstallationKind))
	u.SetNamespace(c.Namespace(t))
	u.SetName("shop")
	wanted := u.DeepCopy().Object["spec"].(map[string]any)
	wanted["applicationRef"].(map[string]any)["version"] = "v1.0.0"
	wanted["namespace"] = map[string]any{"name": u.GetNamespace()}

	require.NoError(t, admin.Create(t.Context(), u))
	assert.Equal(t, wanted, u.Object["spec"])
	u.Object["spec"].(map[string]any)["reconciliationInterval"] = "90s"
	require.NoError(t, admin.Update(t.Context(), u))
	wanted["reconciliationInterval"] = "90s"
	assert.Equal(t, wanted, u.Object["spec"])
}

// P10: applying the same again changes nothing, though the manager does not send what was filled in.
func TestInstallation_isAppliedTwice(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	ns := c.Namespace(t)
	def := definition(t, admin, func(d *v1alpha1.ApplicationDefinition) { d.Spec.DefaultVersion = "v1.0.0" })
	apply := func(change func(spec map[string]any)) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{
			"spec": map[string]any{"applicationRef": map[string]any{"name": def.Name}},
		}}
		u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.ApplicationInstallationKind))
		u.SetNamespace(ns)
		u.SetName("shop")
		if change != nil {
			change(u.Object["spec"].(map[string]any))
		}
		require.NoError(t, admin.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("somebody")))
		return u
	}
	first := apply(nil)
	second := apply(nil)
	assert.Equal(t, first.Object["spec"], second.Object["spec"])
	assert.Equal(t, first.GetGeneration(), second.GetGeneration())
	assert.Equal(t, second.GetResourceVersion(), apply(nil).GetResourceVersion(), "nothing is written")

	def.Spec.DefaultVersion = "v1.1.0"
	require.NoError(t, admin.Update(t.Context(), def))
	third := apply(func(spec map[string]any) { spec["reconciliationInterval"] = "10m" })
	version, _, _ := unstructured.NestedString(third.Object, "spec", "applicationRef", "version")
	assert.Equal(t, "v1.0.0", version, "a default that changes later is no upgrade")
}

// K35, K49, C46
func TestInstallation_ofAnUnknownDefinition(t *testing.T) {
	c := admission(t)
	admin, warned := c.admin(t)
	def := definition(t, admin, nil)
	for name, tc := range map[string]struct {
		definition, version, field string
	}{
		"definition": {"nobody-has-it", "v1.0.0", "spec.applicationRef.name"},
		"version":    {def.Name, "v9.9.9", "spec.applicationRef.version"},
		"no version": {def.Name, "", "spec.applicationRef.version"},
	} {
		t.Run(name, func(t *testing.T) {
			ns := c.Namespace(t)
			err := admin.Create(t.Context(), newInstallation(ns, tc.definition, tc.version))
			require.True(t, apierrors.IsInvalid(err), "refused for users: %v", err)
			assert.ErrorContains(t, err, tc.field)

			warned.take()
			require.NoError(t, admin.Create(t.Context(), newInstallation(ns, tc.definition, tc.version), client.FieldOwner(v1alpha1.FieldManager)),
				"what a GitSync delivers may be here before its definition")
			require.Len(t, warned.take(), 1)
		})
	}
}

// K50, C28
func TestInstallation_warnsOfADeprecatedVersion(t *testing.T) {
	c := admission(t)
	admin, warned := c.admin(t)
	def := definition(t, admin, func(d *v1alpha1.ApplicationDefinition) { d.Spec.Versions[1].Deprecated = true })
	obj := newInstallation(c.Namespace(t), def.Name, "v1.0.0")
	require.NoError(t, admin.Create(t.Context(), obj))
	assert.Empty(t, warned.take())
	obj.Spec.ApplicationRef.Version = "v1.1.0"
	require.NoError(t, admin.Update(t.Context(), obj))
	require.Len(t, warned.take(), 1, "new use")
	obj.Spec.ValuesBlock = "a: 1"
	require.NoError(t, admin.Update(t.Context(), obj))
	assert.Empty(t, warned.take(), "it is used already")
}

// C47: an installation whose definition is gone can still be edited.
func TestInstallation_outlivesItsDefinition(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	def := definition(t, admin, nil)
	obj := newInstallation(c.Namespace(t), def.Name, "v1.0.0")
	require.NoError(t, admin.Create(t.Context(), obj))
	require.NoError(t, admin.Delete(t.Context(), def))
	obj.Spec.ValuesBlock = "a: 1"
	require.NoError(t, admin.Update(t.Context(), obj))
}

// C35: what was delivered before its definition goes wherever that says later. Who may not install
// into any namespace says where to.
func TestInstallation_ofAnUnknownDefinitionNamesItsNamespace(t *testing.T) {
	c := admission(t)
	const unknown = "yet-to-come"
	install := inCluster(in(v1alpha1.Group, "applicationdefinitions", "install", unknown))
	anywhere := []permission{
		inCluster(in("", "namespaces", "install-into")), inCluster(in("", "namespaces", "create")), inCluster(in("", "namespaces", "patch")),
	}
	ns := c.Namespace(t)
	act := in("", "pods", "create") // the definition may name any ServiceAccount, too
	tenant := c.with(t, ns, []permission{install, act})
	obj := newInstallation(ns, unknown, "v1.0.0")
	err := tenant.Create(t.Context(), obj, client.FieldOwner(v1alpha1.FieldManager))
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	for _, missing := range []string{"install-into namespaces", "create namespaces", "patch namespaces", "set spec.namespace"} {
		assert.ErrorContains(t, err, missing)
	}
	err = tenant.Create(t.Context(), newInstallation(ns, unknown, "v1.0.0"))
	assert.True(t, apierrors.IsInvalid(err), "that there is no such definition is what helps: %v", err)

	obj.Spec.Namespace = &v1alpha1.TargetNamespace{Name: ns}
	require.NoError(t, tenant.Create(t.Context(), obj, client.FieldOwner(v1alpha1.FieldManager)))
	other := c.Namespace(t)
	platform := c.with(t, other, []permission{install, act}, anywhere)
	require.NoError(t, platform.Create(t.Context(), newInstallation(other, unknown, "v1.0.0"), client.FieldOwner(v1alpha1.FieldManager)))
}

// C49: who touches only metadata settles nothing that was left open, and needs no right for it.
func TestInstallation_isNotFilledByMetadata(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	ns := c.Namespace(t)
	open := newInstallation(ns, "to-be-named", "")
	require.NoError(t, admin.Create(t.Context(), open, client.FieldOwner(v1alpha1.FieldManager)), "before its definition")
	settled := newInstallation(ns, "to-be-named", "v1.0.0")
	settled.Name, settled.Spec.Namespace = "settled", &v1alpha1.TargetNamespace{Name: ns}
	require.NoError(t, admin.Create(t.Context(), settled, client.FieldOwner(v1alpha1.FieldManager)))
	definition(t, admin, func(d *v1alpha1.ApplicationDefinition) {
		d.Name, d.GenerateName = "to-be-named", ""
		d.Spec.DefaultVersion = "v1.0.0"
		d.Spec.DefaultDeployOptions = &v1alpha1.DeployOptions{Helm: &v1alpha1.HelmDeployOptions{HistoryLimit: 3}}
	})
	require.Eventually(t, func() bool {
		edited := open.DeepCopy()
		edited.Spec.ValuesBlock = "a: 1"
		require.NoError(t, admin.Update(t.Context(), edited, client.DryRunAll))
		return edited.Spec.ApplicationRef.Version == "v1.0.0"
	}, patience, often, "who says something settles the rest, once the definition is known")

	user := c.with(t, ns, nil)
	for _, obj := range []*v1alpha1.ApplicationInstallation{open, settled} {
		before := obj.Spec.DeepCopy()
		obj.Annotations = map[string]string{v1alpha1.ReconcileAtAnnotation: "now"}
		obj.Finalizers = []string{v1alpha1.Finalizer}
		require.NoError(t, user.Update(t.Context(), obj), obj.Name)
		assert.Equal(t, *before, obj.Spec, obj.Name)
		obj.Finalizers = nil
		require.NoError(t, user.Update(t.Context(), obj))
	}
}
