package webhooks_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// enforcedInstallation creates what a driver would of a definition that is enforced, as the copy in a user cluster says.
func enforcedInstallation(t *testing.T, admin client.Client, change func(*v1alpha1.ApplicationDefinition)) (*v1alpha1.ApplicationDefinition, *v1alpha1.ApplicationInstallation) {
	t.Helper()
	def := definition(t, admin, func(d *v1alpha1.ApplicationDefinition) {
		d.Annotations = map[string]string{v1alpha1.CopyOfAnnotation: "hub"}
		d.Spec.Enforced = true
		if change != nil {
			change(d)
		}
	})
	inst := newInstallation(v1alpha1.DefaultSystemNamespace, def.Name, "v1.0.0")
	inst.Name, inst.Labels = def.Name, map[string]string{v1alpha1.ProvidedLabel: v1alpha1.ProvidedEnforced}
	require.NoError(t, admin.Create(t.Context(), inst, client.FieldOwner(v1alpha1.FieldManager)))
	t.Cleanup(func() { _ = admin.Delete(afterwards(t), inst) })
	return def, inst
}

// K2, C45: what is enforced in a user cluster is the driver's own, as long as the definition says so.
func TestEnforced_isTheDriversOwn(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	_, inst := enforcedInstallation(t, admin, nil)
	for name, change := range map[string]func(*v1alpha1.ApplicationInstallation){
		"spec":      func(i *v1alpha1.ApplicationInstallation) { i.Spec.ApplicationRef.Version = "v1.1.0" },
		"label off": func(i *v1alpha1.ApplicationInstallation) { delete(i.Labels, v1alpha1.ProvidedLabel) },
		"another label": func(i *v1alpha1.ApplicationInstallation) {
			i.Labels[v1alpha1.ProvidedLabel] = v1alpha1.ProvidedByDefault
		},
	} {
		changed := inst.DeepCopy()
		change(changed)
		err := admin.Update(t.Context(), changed)
		require.True(t, apierrors.IsForbidden(err), "%s, by an administrator: %v", name, err)
		assert.ErrorContains(t, err, "the definition in the hub decides")
	}
	write := rule(v1alpha1.Group, []string{"applicationinstallations"}, "*")
	install := rule(v1alpha1.Group, []string{"applicationdefinitions"}, "install")
	user := c.user(t, "", write, install)
	require.True(t, apierrors.IsForbidden(user.Delete(t.Context(), inst)), "its deletion")
	err := user.DeleteAllOf(t.Context(), &v1alpha1.ApplicationInstallation{}, client.InNamespace(inst.Namespace), client.MatchingFields{"metadata.name": inst.Name})
	require.True(t, apierrors.IsForbidden(err), "or that of all: %v", err)
	changed := inst.DeepCopy()
	changed.Spec.ApplicationRef.Version = "v1.1.0"
	err = user.Update(t.Context(), changed.DeepCopy(), client.FieldOwner(v1alpha1.FieldManager))
	require.True(t, apierrors.IsForbidden(err), "the name of the field manager is no right: %v", err)
	changed = inst.DeepCopy()
	changed.Annotations = map[string]string{v1alpha1.ReconcileAtAnnotation: "now"}
	require.NoError(t, user.Update(t.Context(), changed), "what decides nothing is open to all users")

	driver := c.user(t, "", write, rule(v1alpha1.Group, []string{"applicationdefinitions"}, "install", "enforce"))
	changed.Spec.ApplicationRef.Version = "v1.1.0"
	require.NoError(t, driver.Update(t.Context(), changed, client.FieldOwner(v1alpha1.FieldManager)))
	require.NoError(t, driver.Delete(t.Context(), changed))
}

// C49: nothing but what is enforced is guarded: neither what is installed by default, nor what has the label and
// is not enforced, nor what is elsewhere.
func TestEnforced_guardsNothingElse(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	def, inst := enforcedInstallation(t, admin, func(d *v1alpha1.ApplicationDefinition) { d.Spec.Enforced = false })
	elsewhere := newInstallation(c.Namespace(t), def.Name, "v1.0.0")
	elsewhere.Name, elsewhere.Labels = def.Name, inst.Labels
	require.NoError(t, admin.Create(t.Context(), elsewhere))
	user := c.user(t, "", rule(v1alpha1.Group, []string{"applicationinstallations"}, "*"), rule(v1alpha1.Group, []string{"applicationdefinitions"}, "install"))
	for _, obj := range []*v1alpha1.ApplicationInstallation{inst, elsewhere} {
		obj.Spec.ApplicationRef.Version = "v1.1.0"
		require.NoError(t, user.Update(t.Context(), obj))
		require.NoError(t, user.Delete(t.Context(), obj))
	}
}

// C47: a namespace that goes is not held up by what is enforced in it, which comes back.
func TestEnforced_goesWithItsNamespace(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	_, inst := enforcedInstallation(t, admin, nil)
	const name = "collector-of-namespaces"
	c.grant(t, admin, name, "", rule(v1alpha1.Group, []string{"applicationinstallations"}, "delete"))
	for _, group := range []string{"system:serviceaccounts", "system:serviceaccounts:kube-system"} {
		config, err := c.AddUser(name, group)
		require.NoError(t, err)
		collector, _ := newClient(t, config, c.mapper(t))
		err = collector.Delete(t.Context(), inst)
		if group == "system:serviceaccounts" {
			require.True(t, apierrors.IsForbidden(err), "any other user: %v", err)
			continue
		}
		require.NoError(t, err, "a controller of Kubernetes")
	}
}
