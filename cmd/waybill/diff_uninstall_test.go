package main

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
)

// installed notes in the status of an installation that it was installed.
func installed(inst *v1alpha1.ApplicationInstallation, method v1alpha1.Method) {
	inst.Status.Application = &v1alpha1.ResolvedApplication{
		Name: inst.Spec.ApplicationRef.Name, Version: inst.Spec.ApplicationRef.Version, Method: method, Namespace: inst.Namespace,
	}
}

// K52, K53: what is being deleted, or was removed by force, is uninstalled.
func TestDiff_ofUninstall(t *testing.T) {
	cluster := user(t)
	c, apps := clientOf(t, cluster), cluster.Namespace(t)
	hubWithID(t, c, apps, "the-hub")
	web := installation(apps, "web", "no-such-definition", "1.0.0")
	installed(web, v1alpha1.MethodHelm)
	web.Status.Release = installWeb(t, cluster, apps)
	site := installation(apps, "site", "no-such-definition", "1.0.0")
	installed(site, v1alpha1.MethodKustomize)
	site.Status.Inventory = &v1alpha1.Inventory{Entries: []v1alpha1.InventoryEntry{{ID: apps + "_page__ConfigMap", Version: "v1"}}}
	delivered(t, cluster, apply.Owner{HubID: "the-hub", Kind: v1alpha1.ApplicationInstallationKind, Namespace: apps, Name: "site"}, configMapYAML(apps, "page", "a"))
	site.Spec.DeletionPolicy = v1alpha1.InstallationOrphan // which does not count for what is removed by force
	create(t, c, web, site)
	removed := write(t, map[string]string{"definition.yaml": `apiVersion: apps.waybill.dev/v1alpha1
kind: ApplicationDefinition
metadata: {name: no-such-definition, annotations: {apps.waybill.dev/force-remove: "1.0.0"}}
spec:
  versions: [{version: 2.0.0, template: {source: {helm: {url: "https://charts.example.com", chartName: web, chartVersion: 2.0.0}}}}]
`})
	at := []string{"-n", apps, "--system-namespace", apps}
	want := map[string]string{"web": " 3 deleted, ", "site": " 1 deleted, "}
	for name, deleted := range want {
		got := waybill(t, cluster, append([]string{"diff", "installation/" + name, "--definition", removed}, at...)...)
		assert.Equal(t, 1, got.code, got.errOut)
		assert.Contains(t, got.errOut, "warning: ApplicationInstallation "+apps+"/"+name+
			": version 1.0.0 was removed from ApplicationDefinition no-such-definition by apps.waybill.dev/force-remove, so that it is uninstalled\n")
		assert.Contains(t, got.errOut, deleted, got.out)

		got = waybill(t, cluster, append([]string{"render", "installation/" + name, "--definition", removed}, at...)...)
		assert.Equal(t, 2, got.code, got.out)
		assert.Contains(t, got.errOut, "by apps.waybill.dev/force-remove, so that it is uninstalled\n")

		got = waybill(t, cluster, append([]string{"diff", "installation/" + name, "--definition", removed, "--version", "3.0.0"}, at...)...)
		assert.Equal(t, 2, got.code, got.out)
		assert.Contains(t, got.errOut, "ApplicationDefinition no-such-definition has no version 3.0.0", "what was never installed may still come")
	}

	require.NoError(t, c.Patch(t.Context(), site, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"deletionPolicy":null}}`))))
	for _, inst := range []*v1alpha1.ApplicationInstallation{web, site} {
		finalizers := func(list string) {
			patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":`+list+`}}`))
			require.NoError(t, client.IgnoreNotFound(c.Patch(t.Context(), inst, patch)))
		}
		finalizers(`["` + v1alpha1.Finalizer + `"]`)
		require.NoError(t, c.Delete(t.Context(), inst))
		got := waybill(t, cluster, append([]string{"diff", "installation/" + inst.Name}, at...)...)
		assert.Equal(t, 1, got.code, got.errOut)
		assert.Contains(t, got.errOut, ": it is being deleted, so that it is uninstalled\n", "neither definition nor source are asked for")
		assert.Contains(t, got.errOut, want[inst.Name], got.out)
		finalizers("null")
	}
}

// What is to stay is not predicted to go, and what the definition forbids to leave is.
func TestDiff_ofUninstallWithOrphan(t *testing.T) {
	cluster := user(t)
	c, apps := clientOf(t, cluster), cluster.Namespace(t)
	hubWithID(t, c, apps, "the-hub")
	inst := installation(apps, "site", "no-such-definition", "1.0.0")
	installed(inst, v1alpha1.MethodKustomize)
	inst.Status.Inventory = &v1alpha1.Inventory{Entries: []v1alpha1.InventoryEntry{{ID: apps + "_page__ConfigMap", Version: "v1"}}}
	inst.Spec.DeletionPolicy, inst.Finalizers = v1alpha1.InstallationOrphan, []string{v1alpha1.Finalizer}
	delivered(t, cluster, apply.Owner{HubID: "the-hub", Kind: v1alpha1.ApplicationInstallationKind, Namespace: apps, Name: "site"}, configMapYAML(apps, "page", "a"))
	create(t, c, inst)
	require.NoError(t, c.Delete(t.Context(), inst))
	t.Cleanup(func() {
		assert.NoError(t, c.Patch(context.WithoutCancel(t.Context()), inst, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
	})
	for name, tc := range map[string]struct {
		reason, spec string
		gone         bool // the definition
		code         int
		says         string
	}{
		"heeded":    {"the definition has nothing against it", "", false, 0, ""},
		"forbidden": {"the definition forbids it", "forbidOrphan: true", false, 1, "forbids Orphan (spec.forbidOrphan): what is installed is uninstalled"},
		"enforced":  {"so does one that is enforced", "enforced: true", false, 1, "forbids Orphan (spec.enforced): what is installed is uninstalled"},
		"not known": {"what is known is the installation", "", true, 0, "it is not known whether ApplicationDefinition no-such-definition forbids Orphan: "},
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{"diff", "installation/site", "-n", apps, "--system-namespace", apps}
			if !tc.gone {
				args = append(args, "--definition", write(t, map[string]string{"definition.yaml": `apiVersion: apps.waybill.dev/v1alpha1
kind: ApplicationDefinition
metadata: {name: no-such-definition}
spec:
  versions: [{version: 1.0.0, template: {source: {git: {url: "https://git.example.com/site", ref: {tag: v1}}}}}]
  ` + tc.spec + "\n"}))
			}
			got := waybill(t, cluster, args...)
			assert.Equal(t, tc.code, got.code, "%s: %s", tc.reason, got.errOut)
			assert.Contains(t, got.errOut, tc.says, tc.reason)
			assert.Equal(t, tc.code == 1, strings.Contains(got.errOut, " 1 deleted, "), "%s: %s", tc.reason, got.errOut)
		})
	}
}

// C59: where a definition is not offered, nothing is installed; what was begun before goes on.
func TestDiff_definitionThatIsNotOffered(t *testing.T) {
	s := newSources(t)
	hubCluster, userCluster := hub(t), user(t)
	h, u := clientOf(t, hubCluster), clientOf(t, userCluster)
	system, apps := hubCluster.Namespace(t), userCluster.Namespace(t)
	engage(t, h, system, "berlin", userCluster.Kubeconfig())
	web := &v1alpha1.ApplicationDefinition{}
	readYAML(t, s.path("catalog", "web.yaml"), web)
	web.Name = system // definitions are shared by all tests
	web.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"environment": "production"}}
	create(t, h, web)
	inst := installation(apps, "web", system, "1.0.0")
	create(t, u, inst)
	at := []string{"installation/web", "-n", apps, "--system-namespace", system, "--cluster", system + "/berlin"}
	offered := func(want int, reason string) {
		t.Helper()
		for verb, good := range map[string]int{"render": 0, "diff": 1} {
			got := waybill(t, hubCluster, append([]string{verb}, at...)...)
			if want == 0 {
				assert.Equal(t, good, got.code, "%s: %s", reason, got.errOut)
				assert.Contains(t, got.out, "Deployment", reason)
				continue
			}
			assert.Equal(t, 2, got.code, "%s: %s", reason, got.errOut)
			assert.Empty(t, got.out, reason)
			assert.Contains(t, got.errOut, "ApplicationInstallation/web in "+apps+": ApplicationDefinition "+system+
				` is not offered to berlin: the labels of its KubernetesCluster do not match "environment=production"`)
		}
	}

	offered(2, "the cluster has no labels")
	before := inst.DeepCopy()
	installed(inst, v1alpha1.MethodHelm)
	after := inst.DeepCopy()
	require.NoError(t, u.Status().Patch(t.Context(), inst, client.MergeFrom(before)))
	offered(2, "what the user cluster says of it proves nothing")
	cluster := &v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "berlin"}}
	record := func(uid string) {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"definitions":{"`+system+`":"`+uid+`"}}}`))
		require.NoError(t, h.Status().Patch(t.Context(), cluster, patch))
	}
	record("another")
	offered(2, "it was begun of another definition of that name")
	record(string(web.UID))
	offered(0, "it was begun while the definition was offered")
	require.NoError(t, h.Status().Patch(t.Context(), cluster, client.RawPatch(types.MergePatchType, []byte(`{"status":{"definitions":null}}`))))
	require.NoError(t, u.Status().Patch(t.Context(), before, client.MergeFrom(after)))
	label := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"environment":"production"}}}`))
	require.NoError(t, h.Patch(t.Context(), cluster, label))
	offered(0, "its labels match")
}

// C59: whether a definition is offered may be hidden from a user, which hides nothing else.
func TestDiff_definitionOfWhichItIsHiddenWhetherItIsOffered(t *testing.T) {
	s, cluster := newSources(t), user(t)
	apps := cluster.Namespace(t)
	web := &v1alpha1.ApplicationDefinition{}
	readYAML(t, s.path("catalog", "web.yaml"), web)
	web.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.ApplicationDefinitionKind))
	web.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"environment": "production"}}
	content, err := yaml.Marshal(web)
	require.NoError(t, err)
	definition := write(t, map[string]string{"web.yaml": string(content)})
	create(t, clientOf(t, cluster), installation(apps, "web", "web", "1.0.0"))
	tenant, _ := userWith(t, cluster, apps, allButNamespaces...)

	for verb, want := range map[string]int{"render": 0, "diff": 1} {
		args := []string{verb, "installation/web", "-n", apps, "--system-namespace", apps, "--definition", definition}
		got := waybillWith(t, "", append(args, "--kubeconfig", tenant)...)
		assert.Equal(t, want, got.code, got.errOut)
		assert.Contains(t, got.out, "Deployment")
		assert.Contains(t, got.errOut, "warning: it is not known whether ApplicationDefinition web is offered to user: list KubernetesClusters: ")

		got = waybill(t, cluster, args...)
		assert.Equal(t, 2, got.code, got.out)
		assert.Contains(t, got.errOut, "is not offered to user: user is a hub that has no KubernetesCluster for itself, or several", "that is known")
	}
}
