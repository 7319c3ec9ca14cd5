package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
)

// hubWithID notes the id of a hub in a namespace, which is the system namespace then.
func hubWithID(t *testing.T, c client.Client, namespace, id string) {
	t.Helper()
	create(t, c, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v1alpha1.HubConfigMap}, Data: map[string]string{v1alpha1.HubIDKey: id},
	})
}

// syncOf creates a GitSync that has delivered ConfigMaps to a namespace of its own cluster, and returns who owns them.
func syncOf(t *testing.T, c client.Client, namespace string, names ...string) apply.Owner {
	t.Helper()
	gs := gitSync(namespace, "site")
	gs.Status.Inventory = &v1alpha1.Inventory{}
	for _, name := range names {
		gs.Status.Inventory.Entries = append(gs.Status.Inventory.Entries, v1alpha1.InventoryEntry{ID: namespace + "_" + name + "__ConfigMap", Version: "v1"})
	}
	create(t, c, gs)
	return apply.Owner{HubID: "this-hub", Kind: v1alpha1.GitSyncKind, Namespace: namespace, Name: "site"}
}

// P9, C53: what has left is deleted once all else is applied, and what lost its mark is released.
func TestDiff_deletesWhatHasLeft(t *testing.T) {
	cluster := hub(t)
	c, namespace := clientOf(t, cluster), cluster.Namespace(t)
	hubWithID(t, c, namespace, "this-hub")
	owner := syncOf(t, c, namespace, "same", "gone", "unmarked")
	delivered(t, cluster, owner, configMapYAML(namespace, "same", "a"), configMapYAML(namespace, "gone", "a"))
	delivered(t, cluster, apply.Owner{}, configMapYAML(namespace, "unmarked", "a"))
	files := map[string]string{"same.yaml": configMapYAML(namespace, "same", "a")}
	args := []string{"diff", "gitsync/site", "-n", namespace, "--system-namespace", namespace, "--path"}

	got := waybill(t, cluster, append(args, write(t, files))...)
	assert.Equal(t, 1, got.code, got.errOut)
	assert.Contains(t, got.out, "/gone in hub: deleted\n")
	assert.Contains(t, got.out, "/unmarked in hub: kept: has left, and does not say any more that it is Waybill's: it is released\n")
	assert.Contains(t, got.errOut, "0 created, 0 changed, 1 deleted, 0 refused, 2 as they are\n")

	files["refused.yaml"] = configMapYAML(namespace+"-absent", "early", "a")
	got = waybill(t, cluster, append(args, write(t, files))...)
	assert.Equal(t, 1, got.code, got.errOut)
	assert.Contains(t, got.out, "/gone in hub: deleted\n", "what waits is not about it")
	assert.Contains(t, got.errOut, "0 created, 0 changed, 1 deleted, 1 refused, 2 as they are\n")

	files["refused.yaml"] = configMapYAML(namespace+"-absent", "gone", "a")
	got = waybill(t, cluster, append(args, write(t, files))...)
	assert.Contains(t, got.out, "/gone in hub: kept: has left, and stays: ConfigMap "+namespace+"-absent/gone, which waits for its kind or namespace, may replace it\n")
	assert.Contains(t, got.errOut, "0 created, 0 changed, 0 deleted, 1 refused, 3 as they are\n")

	files["refused.yaml"] = "a: ["
	got = waybill(t, cluster, append(args, write(t, files))...)
	assert.Contains(t, got.out, "/refused.yaml:1, which cannot be read, may describe it\n")
	assert.Contains(t, got.errOut, "nothing is deleted while this is so\n")

	delete(files, "refused.yaml")
	files["namespace.yaml"] = "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + namespace + "-absent}\n"
	files["early.yaml"] = configMapYAML(namespace+"-absent", "early", "a")
	got = waybill(t, cluster, append(args, write(t, files))...)
	assert.Contains(t, got.errOut, "2 created, 0 changed, 1 deleted, 0 refused, 2 as they are\n", "the namespace comes with it: %s", got.out)
}

// P9: a Namespace stays for what stays in it, which would be deleted with it.
func TestDiff_namespaceOfWhatStays(t *testing.T) {
	cluster := hub(t)
	c, namespace := clientOf(t, cluster), cluster.Namespace(t)
	hubWithID(t, c, namespace, "this-hub")
	gs := gitSync(namespace, "site")
	gs.Spec.AllowEmpty, gs.Status.Inventory = true, &v1alpha1.Inventory{}
	owner := apply.Owner{HubID: "this-hub", Kind: v1alpha1.GitSyncKind, Namespace: namespace, Name: "site"}
	others := owner
	others.Name = "other"
	for which, deliver := range map[string]func(in string){
		"empty":  func(string) {},
		"pruned": func(in string) { delivered(t, cluster, owner, configMapYAML(in, "page", "a")) },
		"kept": func(in string) {
			delivered(t, cluster, owner, "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: "+in+", name: page, annotations: {apps.waybill.dev/prune: disabled}}}")
		},
		"others": func(in string) { delivered(t, cluster, others, configMapYAML(in, "page", "a")) },
	} {
		in := namespace + "-" + which
		create(t, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: in}})
		delivered(t, cluster, owner, "{apiVersion: v1, kind: Namespace, metadata: {name: "+in+"}}")
		deliver(in)
		gs.Status.Inventory.Entries = append(gs.Status.Inventory.Entries,
			v1alpha1.InventoryEntry{ID: "_" + in + "__Namespace", Version: "v1"}, v1alpha1.InventoryEntry{ID: in + "_page__ConfigMap", Version: "v1"})
	}
	create(t, c, gs)

	folder := write(t, map[string]string{"README.md": "nothing"})
	got := waybill(t, cluster, "diff", "gitsync/site", "-n", namespace, "--system-namespace", namespace, "--path", folder)
	assert.Equal(t, 1, got.code, got.errOut)
	assert.Contains(t, got.out, "# Namespace "+namespace+"-empty in hub: deleted\n")
	assert.Contains(t, got.out, "# Namespace "+namespace+"-pruned in hub: deleted\n")
	for _, which := range []string{"kept", "others"} {
		in := namespace + "-" + which
		assert.Contains(t, got.out, "# Namespace "+in+" in hub: kept: has left, and stays for ConfigMap "+in+"/page, which would be deleted with it\n")
	}
	assert.NotContains(t, got.out, "ConfigMap "+namespace+"-others/page in hub", "it is not the GitSync's")
	assert.Contains(t, got.errOut, "0 created, 0 changed, 3 deleted, 0 refused, 3 as they are\n")
}

// K37, K50: an installation into a namespace that is not created fails.
func TestDiff_installationIntoNoNamespace(t *testing.T) {
	s, cluster := newSources(t), user(t)
	apps := cluster.Namespace(t)
	inst := installation(apps, "web", "web", "1.0.0")
	inst.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.ApplicationInstallationKind))
	for create, want := range map[bool]string{false: "3 refused", true: "5 created, 0 changed, 0 deleted, 0 refused"} {
		inst.Spec.Namespace = &v1alpha1.TargetNamespace{Name: apps + "-absent", Create: create}
		content, err := yaml.Marshal(inst)
		require.NoError(t, err)
		got := waybill(t, cluster, "diff", "-f", write(t, map[string]string{"web.yaml": string(content)}), "--definition", s.path("catalog", "web.yaml"))
		assert.Equal(t, 1, got.code, got.errOut)
		assert.Contains(t, got.errOut, want, got.out)
	}
}

// C40, C53: a GitSync of the same name in another hub is another owner.
func TestDiff_ownerOfAnotherHub(t *testing.T) {
	cluster := hub(t)
	c, namespace := clientOf(t, cluster), cluster.Namespace(t)
	hubWithID(t, c, namespace, "this-hub")
	owner := syncOf(t, c, namespace, "theirs", "left")
	owner.HubID = "other-hub"
	delivered(t, cluster, owner, configMapYAML(namespace, "theirs", "a"), configMapYAML(namespace, "left", "a"))
	args := []string{"diff", "gitsync/site", "-n", namespace, "--path", write(t, map[string]string{"theirs.yaml": configMapYAML(namespace, "theirs", "b")})}

	got := waybill(t, cluster, append(args, "--system-namespace", namespace)...)
	assert.Equal(t, 1, got.code, got.errOut)
	assert.Contains(t, got.out, "/theirs in hub: refused: it belongs to GitSync "+namespace+"/site of hub other-hub; to take it over, annotate the manifest with apps.waybill.dev/adopt: \"true\"\n")
	assert.Contains(t, got.errOut, "0 created, 0 changed, 0 deleted, 1 refused, 0 as they are\n")
	assert.NotContains(t, got.errOut, "warning")

	got = waybill(t, cluster, args...)
	assert.Contains(t, got.errOut, "warning: objects of another hub are not told apart from those of this one: ", "the id is not known there")
}

// C59: a local folder is read as the GitSync reads its own.
func TestDiff_folderAsTheGitSyncReadsIt(t *testing.T) {
	cluster := hub(t)
	namespace := cluster.Namespace(t)
	gs := gitSync(namespace, "site")
	gs.Spec.Ignore = ptr.To("drafts/\n")
	create(t, clientOf(t, cluster), gs)
	files := map[string]string{
		"a/one.yaml": configMapYAML(namespace, "one", "a"), "drafts/two.yaml": configMapYAML(namespace, "two", "a"),
		"chart/Chart.yaml": configMapYAML(namespace, "three", "a"),
	}
	args := []string{"diff", "gitsync/site", "-n", namespace, "--system-namespace", namespace, "--path"}

	got := waybill(t, cluster, append(args, write(t, files))...)
	assert.Equal(t, 1, got.code, got.errOut)
	assert.Contains(t, got.out, "/one in hub: created\n")
	assert.NotContains(t, got.out, "/two", "it is ignored")
	assert.Contains(t, got.out, "/three in hub: created\n", "what is called so may be a manifest")

	files["b/one.yaml"] = configMapYAML(namespace, "one", "b")
	folder := write(t, files)
	got = waybill(t, cluster, append(args, folder)...)
	assert.Equal(t, 2, got.code, got.out)
	assert.NotContains(t, got.out, "/one", "neither is used")
	assert.Contains(t, got.errOut, folder+"/a/one.yaml:1: ConfigMap "+namespace+"/one: the same object is in b/one.yaml:1 too")

	got = waybillWith(t, "", "render", "--path", folder)
	assert.Equal(t, 1, got.code, got.out)
	assert.Contains(t, got.errOut, folder+"/a/one.yaml:1: ConfigMap "+namespace+"/one: the same object is in b/one.yaml:1 too")
}

// A GitSync of another cluster delivers from there, with the credentials, the clusters and the inventory that are there.
func TestDiff_gitSyncOfAnotherCluster(t *testing.T) {
	s := newSources(t)
	hubCluster, seed := hub(t), user(t)
	h, c := clientOf(t, hubCluster), clientOf(t, seed)
	system, there := hubCluster.Namespace(t), seed.Namespace(t)
	engage(t, h, system, "seed", seed.Kubeconfig())
	gs := gitSync(there, "team-a")
	gs.Spec.URL, gs.Spec.Path, gs.Spec.SecretRef = s.repo.URL(), "installations/team-a", &v1alpha1.LocalReference{Name: "git-examples"}
	secret := &corev1.Secret{}
	readYAML(t, s.path("credentials", "git.yaml"), secret)
	secret.Namespace = there
	create(t, c, gs, secret)

	got := waybill(t, hubCluster, "render", "gitsync/team-a", "-n", there, "--cluster", system+"/seed", "-o", "name")
	require.Equal(t, 0, got.code, got.errOut)
	assert.Contains(t, got.out, "ApplicationInstallation.apps.waybill.dev team-a/web\n")

	got = waybill(t, hubCluster, "diff", "gitsync/team-a", "-n", there, "--cluster", system+"/seed", "--system-namespace", there)
	assert.Equal(t, 1, got.code, got.errOut)
	assert.Contains(t, got.out, "# Namespace team-a in seed: created\n")

	patch := client.MergeFrom(gs.DeepCopy())
	gs.Spec.ClusterSelector = &metav1.LabelSelector{}
	require.NoError(t, c.Patch(t.Context(), gs, patch))
	engage(t, c, there, "berlin", seed.Kubeconfig())
	got = waybill(t, hubCluster, "diff", "gitsync/team-a", "-n", there, "--cluster", system+"/seed", "--system-namespace", there)
	assert.Equal(t, 1, got.code, got.errOut)
	assert.Contains(t, got.out, "# Namespace team-a in berlin: created\n")
}
