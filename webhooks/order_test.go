package webhooks_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// dependent is an installation that depends on others.
func dependent(namespace, name, definition string, on ...v1alpha1.InstallationDependency) *v1alpha1.ApplicationInstallation {
	i := newInstallation(namespace, definition, "v1.0.0")
	i.Name, i.Spec.DependsOn = name, on
	return i
}

// eventuallyRefused waits until admission has seen what was written before, and returns why it refuses. Each try
// is a dry run.
func eventuallyRefused(t *testing.T, try func() error) error {
	t.Helper()
	var err error
	require.Eventually(t, func() bool { err = try(); return err != nil }, patience, often)
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	return err
}

// K9: installations that would wait for one another are refused, also across namespaces, of which those that
// the writer does not name are not shown.
func TestInstallation_refusesACycle(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	a, b, def := c.Namespace(t), c.Namespace(t), definition(t, admin, nil)
	require.NoError(t, admin.Create(t.Context(), dependent(a, "one", def.Name, v1alpha1.InstallationDependency{Name: "two", Namespace: b})))
	require.NoError(t, admin.Create(t.Context(), dependent(b, "two", def.Name, v1alpha1.InstallationDependency{Name: "hidden"})))
	hidden := dependent(b, "hidden", def.Name)
	require.NoError(t, admin.Create(t.Context(), hidden))
	three := func() *v1alpha1.ApplicationInstallation {
		return dependent(c.Namespace(t), "three", def.Name, v1alpha1.InstallationDependency{Name: "one", Namespace: a})
	}
	require.NoError(t, admin.Create(t.Context(), three(), client.DryRunAll), "a line is none")

	err := eventuallyRefused(t, func() error {
		hidden.Spec.DependsOn = []v1alpha1.InstallationDependency{{Name: "one", Namespace: a}}
		return admin.Update(t.Context(), hidden.DeepCopy(), client.DryRunAll)
	})
	require.ErrorContains(t, err, "spec.dependsOn")
	assert.ErrorContains(t, err, "the installation would wait for itself: "+b+"/hidden -> "+a+"/one -> "+b+"/two -> "+b+"/hidden")

	err = eventuallyRefused(t, func() error {
		return admin.Create(t.Context(), dependent(b, "two-too", def.Name, v1alpha1.InstallationDependency{Name: "two-too"}), client.DryRunAll)
	})
	assert.ErrorContains(t, err, "cannot depend on itself")
}

// K9: what a definition requires is named when it is installed and is not there.
func TestInstallation_warnsOfWhatIsMissing(t *testing.T) {
	c := admission(t)
	admin, warned := c.admin(t)
	ns, db := c.Namespace(t), definition(t, admin, nil)
	web := definition(t, admin, func(d *v1alpha1.ApplicationDefinition) {
		d.Spec.Requires = []v1alpha1.ApplicationRequirement{{Name: db.Name, Version: ">= 1.1"}}
	})
	missing := "ApplicationDefinition " + web.Name + " requires " + db.Name + " >= 1.1, of which the cluster has no installation"
	require.NoError(t, admin.Create(t.Context(), newInstallation(ns, web.Name, "v1.0.0"), client.DryRunAll))
	assert.Contains(t, strings.Join(warned.take(), "\n"), missing)
	fitting := newInstallation(ns, db.Name, "v1.1.0")
	fitting.Name = "db"
	require.NoError(t, admin.Create(t.Context(), fitting))
	require.Eventually(t, func() bool {
		require.NoError(t, admin.Create(t.Context(), newInstallation(ns, web.Name, "v1.0.0"), client.DryRunAll))
		return len(warned.take()) == 0
	}, patience, often)
}

// K9: definitions that would require each other are refused.
func TestDefinition_refusesACycle(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	requires := func(names ...string) func(*v1alpha1.ApplicationDefinition) {
		return func(d *v1alpha1.ApplicationDefinition) {
			for _, name := range names {
				d.Spec.Requires = append(d.Spec.Requires, v1alpha1.ApplicationRequirement{Name: name})
			}
		}
	}
	operator := definition(t, admin, nil)
	db := definition(t, admin, requires(operator.Name))
	web := definition(t, admin, requires(db.Name, operator.Name))
	err := eventuallyRefused(t, func() error {
		requires(web.Name)(operator)
		operator.Spec.Requires = operator.Spec.Requires[:1]
		return admin.Update(t.Context(), operator.DeepCopy(), client.DryRunAll)
	})
	require.ErrorContains(t, err, "spec.requires")
	assert.ErrorContains(t, err, "the definition would require itself: "+operator.Name+" -> "+web.Name+" -> ")
}

// K9: what others depend on may be deleted, and a warning names these: those of other namespaces by their number.
func TestInstallation_warnsWhoDeletesWhatOthersNeed(t *testing.T) {
	c := admission(t)
	admin, warned := c.admin(t)
	ns, elsewhere, def := c.Namespace(t), c.Namespace(t), definition(t, admin, nil)
	needy := definition(t, admin, func(d *v1alpha1.ApplicationDefinition) {
		d.Spec.Requires = []v1alpha1.ApplicationRequirement{{Name: def.Name}}
	})
	db := dependent(ns, "db", def.Name)
	require.NoError(t, admin.Create(t.Context(), db))
	require.NoError(t, admin.Create(t.Context(), dependent(ns, "web", def.Name+"-x", v1alpha1.InstallationDependency{Name: "db"}), client.FieldOwner(v1alpha1.FieldManager)))
	require.NoError(t, admin.Create(t.Context(), dependent(elsewhere, "far", def.Name+"-x", v1alpha1.InstallationDependency{Name: "db", Namespace: ns}), client.FieldOwner(v1alpha1.FieldManager)))
	require.NoError(t, admin.Create(t.Context(), dependent(ns, "needy", needy.Name)))
	want := "ApplicationInstallation " + ns + "/db is deleted although others depend on it, which stay and are not upgraded without it: needy, web, 1 in other namespaces"
	require.Eventually(t, func() bool {
		warned.take()
		require.NoError(t, admin.Delete(t.Context(), db, client.DryRunAll))
		return strings.Join(warned.take(), "\n") == want
	}, patience, often)
	require.NoError(t, admin.Delete(t.Context(), db))
}
