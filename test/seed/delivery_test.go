package seed_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

// forSeeds is what the hub delivers to seeds: an application for their clusters, and a GitSync.
const forSeeds = `
apiVersion: apps.waybill.dev/v1alpha1
kind: KubernetesApplication
metadata: {name: placed, namespace: waybill-system}
spec:
  clusterSelector: {matchLabels: {role: User}}
  resourceTemplates:
  - metadata: {name: note}
    spec:
      template: {apiVersion: v1, kind: ConfigMap, metadata: {name: placed, namespace: default}, data: {from: hub}}
---
apiVersion: apps.waybill.dev/v1alpha1
kind: GitSync
metadata: {name: users, namespace: waybill-system}
spec:
  url: URL
  interval: 10m
  path: users
  clusterSelector: {matchLabels: {role: User}}
  secretRef: {name: git}
`

// seedSync is the GitSync on the hub that delivers it.
const seedSync = `
apiVersion: apps.waybill.dev/v1alpha1
kind: GitSync
metadata: {name: seeds, namespace: waybill-system}
spec:
  url: URL
  interval: 10m
  path: seeds
  clusterSelector: {matchLabels: {role: Seed}}
  secretRef: {name: git}
`

// forUsers is what seeds deliver to their clusters.
const forUsers = `
apiVersion: apps.waybill.dev/v1alpha1
kind: ApplicationInstallation
metadata: {name: one, namespace: synced}
spec: {applicationRef: {name: synced, version: 1.0.0}}
`

// C29, C44, P6: GitSyncs, KubernetesClusters and KubernetesApplications work in a seed as in a hub, and a GitSync of the
// hub delivers them to it.
func TestGitSync_fromTheHubThroughASeed(t *testing.T) {
	f := newFleet(t)
	f.define(t, "synced")
	require.NoError(t, f.user.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "synced"}}))
	_, repo := hub.NewRepo(t)
	for _, c := range []client.Client{f.hub, f.seed} {
		require.NoError(t, c.Create(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "git"}, Data: map[string][]byte{"ca.crt": hub.Authority(t)},
		}))
	}
	_, err := repo.Commit(t.Context(), map[string]string{"seeds/all.yaml": strings.ReplaceAll(forSeeds, "URL", repo.URL()), "users/all.yaml": forUsers})
	require.NoError(t, err)
	sync := &v1alpha1.GitSync{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(strings.ReplaceAll(seedSync, "URL", repo.URL())), sync))
	require.NoError(t, f.hub.Create(t.Context(), sync))

	f.awaitInstalled(t, "synced", "1.0.0")
	await(t, f.user, types.NamespacedName{Namespace: "default", Name: "placed"}, func(c *corev1.ConfigMap) bool { return c.Data["from"] == "hub" })
	await(t, f.hub, inSystem("seeds"), func(gs *v1alpha1.GitSync) bool { return ready(gs).Status == metav1.ConditionTrue })
	inSeed := await(t, f.seed, inSystem("placed"), func(a *v1alpha1.KubernetesApplication) bool { return ready(a).Status == metav1.ConditionTrue })
	assert.Equal(t, berlin, inSeed.Status.Cluster)

	require.NoError(t, f.hub.Delete(t.Context(), sync))
	awaitGone(t, f.hub, sync, inSystem("seeds"))
	awaitGone(t, f.seed, inSeed, inSystem("placed"))
	awaitGone(t, f.user, &v1alpha1.ApplicationInstallation{}, types.NamespacedName{Namespace: "synced", Name: "one"})
}

// C29: the hub places nothing in a seed, and drives no installation there. The seed does.
func TestSeed_isNoUserCluster(t *testing.T) {
	f := newFleet(t)
	f.define(t, "not-here")
	await(t, f.seed, named("not-here"), func(d *v1alpha1.ApplicationDefinition) bool { return d.IsCopy() })
	inst := &v1alpha1.ApplicationInstallation{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "not-here"},
		Spec:       v1alpha1.ApplicationInstallationSpec{ApplicationRef: v1alpha1.ApplicationReference{Name: "not-here", Version: "1.0.0"}},
	}
	require.NoError(t, f.seed.Create(t.Context(), inst))
	apps := map[string]*v1alpha1.KubernetesApplication{}
	for name, cluster := range map[string]string{"anywhere": "", "there": europe} {
		app := &v1alpha1.KubernetesApplication{}
		require.NoError(t, yaml.UnmarshalStrict([]byte(`
spec:
  clusterSelector: {matchLabels: {role: Seed}}
  resourceTemplates:
  - metadata: {name: note}
    spec:
      template: {apiVersion: v1, kind: ConfigMap, metadata: {name: misplaced, namespace: default}}
`), app))
		app.Namespace, app.Name, app.Spec.ClusterName = system, name, cluster
		require.NoError(t, f.hub.Create(t.Context(), app))
		apps[name] = app
	}
	misfit := await(t, f.hub, inSystem("anywhere"), func(a *v1alpha1.KubernetesApplication) bool { return ready(a).Reason == v1alpha1.NoClusterFitsReason })
	assert.Contains(t, ready(misfit).Message, "cluster europe: it is a seed: create the KubernetesApplication in it")
	forced := await(t, f.hub, inSystem("there"), func(a *v1alpha1.KubernetesApplication) bool { return ready(a).Reason == v1alpha1.ResourcesFailedReason })
	assert.Contains(t, ready(forced).Message, "KubernetesCluster waybill-system/europe is a seed: delete the application, and create it in the seed")
	for name, app := range apps {
		require.NoError(t, f.hub.Delete(t.Context(), app))
		awaitGone(t, f.hub, app, inSystem(name))
	}
	require.Error(t, f.seed.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "misplaced"}, &corev1.ConfigMap{}))
	require.NoError(t, f.seed.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "not-here"}, inst))
	assert.Empty(t, inst.Finalizers, "no controller drives it before the seed has a KubernetesCluster for itself")
	requests, err := f.seedAt.Requests(t.Context(), env.AuditMark{}, env.ByUser(theHub))
	require.NoError(t, err)
	asked := map[string]bool{}
	for _, r := range requests {
		asked[r.Resource] = true
	}
	assert.True(t, asked["applicationdefinitions"])
	for _, other := range []string{"applicationinstallations", "customresourcedefinitions"} {
		assert.False(t, asked[other], "the hub has no business with %s", other)
	}

	here := &v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "here"}}
	require.NoError(t, f.seed.Create(t.Context(), here))
	await(t, f.seed, types.NamespacedName{Namespace: "default", Name: "not-here"}, func(c *corev1.ConfigMap) bool { return c.Data["version"] == "1.0.0" })
	used := []string{"waybill-system/europe/waybill-system/here/default/not-here"}
	await(t, f.hub, named("not-here"), func(d *v1alpha1.ApplicationDefinition) bool {
		return len(d.Status.UsedBy) == 1 && assert.ObjectsAreEqual(used, d.Status.UsedBy[0].Installations)
	})
	require.NoError(t, f.seed.Delete(t.Context(), inst))
	awaitGone(t, f.seed, inst, types.NamespacedName{Namespace: "default", Name: "not-here"})
	require.NoError(t, f.seed.Delete(t.Context(), here))
	awaitGone(t, f.seed, here, inSystem("here"))
	await(t, f.seed, named("not-here"), func(d *v1alpha1.ApplicationDefinition) bool { return d.InCatalog() })
}
