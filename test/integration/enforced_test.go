package integration_test

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/program"
)

// catalog serves the versions 1.0.0 and 1.1.0 of a chart `good`, and of a chart `bad` whose 1.1.0 cannot be
// rendered.
func (u *tenant) catalog() string {
	u.Helper()
	charts, err := env.StartHelmRepo(env.Access{})
	require.NoError(u, err)
	u.Cleanup(charts.Stop)
	for _, name := range []string{"good", "bad"} {
		for _, version := range []string{"1.0.0", "1.1.0"} {
			_, err = charts.Push("../../examples/charts/web", func(c *chart.Chart) {
				c.Metadata.Name, c.Metadata.Version, c.Schema = name, version, nil
				text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {version: " + version + "}\n"
				if name == "bad" && version == "1.1.0" {
					text += `---{{ fail "it is broken" }}`
				}
				c.Templates = []*chart.File{{Name: "templates/version.yaml", Data: []byte(text)}}
			})
			require.NoError(u, err)
		}
	}
	return charts.URL()
}

// enforce publishes a definition that is enforced in the cluster of the test.
func (u *tenant) enforce(name, url string) *v1alpha1.ApplicationDefinition {
	u.Helper()
	d := u.enforced(name, name, url)
	require.NoError(u, u.admin.Create(u.Context(), d))
	return d
}

// enforced returns a definition of a chart that is enforced in the cluster of the test.
func (u *tenant) enforced(name, chartName, url string) *v1alpha1.ApplicationDefinition {
	d := &v1alpha1.ApplicationDefinition{ObjectMeta: metav1.ObjectMeta{Name: u.namespace + "-" + name}}
	d.Spec.Enforced, d.Spec.DefaultVersion = true, "1.0.0"
	d.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"test": u.namespace}}
	for _, version := range []string{"1.0.0", "1.1.0"} {
		d.Spec.Versions = append(d.Spec.Versions, v1alpha1.ApplicationVersion{Version: version, Template: &v1alpha1.ApplicationTemplate{
			Source: v1alpha1.ApplicationSource{Helm: &v1alpha1.HelmSource{URL: url, ChartName: chartName, ChartVersion: version}},
		}})
	}
	return d
}

// drive runs a driver for the cluster of the test, which gets what is enforced, until the end of the test. The definitions
// go then.
func (u *tenant) drive(definitions ...*v1alpha1.ApplicationDefinition) {
	u.Helper()
	here := &v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{
		Name: u.namespace, Namespace: v1alpha1.DefaultSystemNamespace, Labels: map[string]string{"test": u.namespace},
	}}
	require.NoError(u, u.admin.Create(u.Context(), here))
	driver, err := program.Start(u.Context(), program.Options{
		Name: program.Sync, As: "driver", Bin: u.bin, Kubeconfig: u.cluster.KubeconfigFile(),
		Args: []string{"--controllers=driver,applicationdefinition", "--cache-dir=" + u.TempDir()},
	})
	require.NoError(u, err)
	p := &platform{tenant: u}
	u.Cleanup(func() {
		p.remove(here) // what is enforced goes with it
		for _, d := range definitions {
			p.remove(d)
		}
		require.NoError(u, driver.Kill())
	})
}

// follow has definitions have another default version, one after the other.
func (u *tenant) follow(version string, definitions ...*v1alpha1.ApplicationDefinition) {
	u.Helper()
	for _, d := range definitions {
		require.NoError(u, u.admin.Get(u.Context(), client.ObjectKeyFromObject(d), d))
		before := d.DeepCopy()
		d.Spec.DefaultVersion = version
		require.NoError(u, u.admin.Patch(u.Context(), d, client.MergeFrom(before)))
	}
}

func (u *tenant) installed(d *v1alpha1.ApplicationDefinition, is func(*v1alpha1.ApplicationInstallation) bool, what string) *v1alpha1.ApplicationInstallation {
	u.Helper()
	inst := &v1alpha1.ApplicationInstallation{}
	key := client.ObjectKey{Namespace: v1alpha1.DefaultSystemNamespace, Name: d.Name}
	require.Eventually(u, func() bool { return u.admin.Get(u.Context(), key, inst) == nil && is(inst) }, limit, often, "%s is not %s: %+v", d.Name, what, inst)
	return inst
}

func readyIn(version string) func(*v1alpha1.ApplicationInstallation) bool {
	return func(i *v1alpha1.ApplicationInstallation) bool {
		return conditions.IsReady(i) && i.Status.ObservedGeneration == i.Generation && i.Status.Application != nil && i.Status.Application.Version == version
	}
}

// K2, K3: what a platform enforces is installed, and upgraded where its definition says so. One whose chart
// breaks keeps its old release, and holds up no other. Users of the cluster cannot remove it.
func TestEnforced_followsItsDefinition(t *testing.T) {
	u := newTenant(t)
	url := u.catalog()
	good, bad := u.enforce("good", url), u.enforce("bad", url)
	u.drive(good, bad)
	for _, d := range []*v1alpha1.ApplicationDefinition{good, bad} {
		u.installed(d, readyIn("1.0.0"), "installed")
	}
	inst := u.installed(good, readyIn("1.0.0"), "installed")
	assert.True(t, apierrors.IsForbidden(u.Delete(t.Context(), inst)), "a tenant")

	u.follow("1.1.0", bad, good)
	u.installed(good, readyIn("1.1.0"), "upgraded")
	u.installed(bad, func(i *v1alpha1.ApplicationInstallation) bool {
		return i.Spec.ApplicationRef.Version == "1.1.0" && i.Status.ObservedGeneration == i.Generation && conditions.IsFalse(i, v1alpha1.ReadyCondition)
	}, "refused")
	for d, version := range map[*v1alpha1.ApplicationDefinition]string{good: "1.1.0", bad: "1.0.0"} {
		of := &corev1.ConfigMap{}
		require.NoError(t, u.admin.Get(t.Context(), client.ObjectKey{Namespace: d.Name, Name: d.Name[len(u.namespace)+1:]}, of))
		assert.Equal(t, version, of.Data["version"], d.Name)
	}
}

// K9: what is enforced is installed after what it requires, and follows its definition after that does: where the new version
// of what it requires breaks, it stays as it is, and says why.
func TestEnforced_inTheOrderOfRequirements(t *testing.T) {
	u := newTenant(t)
	url := u.catalog()
	app := u.enforced("app", "good", url) // before `bad` by name
	app.Spec.Requires = []v1alpha1.ApplicationRequirement{{Name: u.namespace + "-bad"}}
	require.NoError(t, u.admin.Create(t.Context(), app))
	bad := u.enforce("bad", url)
	u.drive(app, bad)
	u.installed(app, readyIn("1.0.0"), "installed")
	u.installed(bad, readyIn("1.0.0"), "installed")
	order, err := resourceversion.CompareResourceVersion(u.versionMap(bad, "bad").ResourceVersion, u.versionMap(app, "good").ResourceVersion)
	require.NoError(t, err)
	assert.Negative(t, order, "what it requires came first")

	u.follow("1.1.0", bad, app)
	waiting := u.installed(app, func(i *v1alpha1.ApplicationInstallation) bool {
		return i.Spec.ApplicationRef.Version == "1.1.0" && conditions.GetReason(i, v1alpha1.ReadyCondition) == v1alpha1.RequirementMissingReason &&
			strings.Contains(conditions.GetMessage(i, v1alpha1.ReadyCondition), "is not ready: ")
	}, "waiting")
	assert.Equal(t, "1.0.0", waiting.Status.Application.Version)
	assert.Equal(t, "1.0.0", u.versionMap(app, "good").Data["version"])

	u.follow("1.0.0", bad)
	u.installed(app, readyIn("1.1.0"), "upgraded")
	assert.Equal(t, "1.1.0", u.versionMap(app, "good").Data["version"])
}

// versionMap is what the chart of a definition consists of.
func (u *tenant) versionMap(d *v1alpha1.ApplicationDefinition, chartName string) *corev1.ConfigMap {
	u.Helper()
	of := &corev1.ConfigMap{}
	require.NoError(u, u.admin.Get(u.Context(), client.ObjectKey{Namespace: d.Name, Name: chartName}, of))
	return of
}
