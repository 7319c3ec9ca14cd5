package main

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
)

// delivering returns a GitSync that has delivered objects to its own cluster.
func delivering(namespace, name string, objects ...client.Object) *v1alpha1.GitSync {
	gs := gitSync(namespace, name)
	gs.Status.Inventory = &v1alpha1.Inventory{}
	for _, o := range objects {
		gvk := o.GetObjectKind().GroupVersionKind()
		id := strings.Join([]string{o.GetNamespace(), o.GetName(), gvk.Group, gvk.Kind}, "_")
		gs.Status.Inventory.Entries = append(gs.Status.Inventory.Entries, v1alpha1.InventoryEntry{ID: id, Version: gvk.Version})
	}
	return gs
}

// databasesIn creates the GitSync `many`, which delivers an object of a custom kind to each of some
// namespaces. Each owns objects, of which one owns another. want is the tree.
func databasesIn(t *testing.T, cluster *env.Cluster, count int) (namespaces, want []string) {
	t.Helper()
	c := clientOf(t, cluster)
	var delivered []client.Object
	want = []string{"GitSync/many InProgress"}
	for i := range count {
		namespace := cluster.Namespace(t)
		db := custom(namespace, "Database", "db")
		create(t, c, db)
		replica := ownedBy(custom(namespace, "Replica", "one"), db)
		create(t, c, replica, ownedBy(configMap(namespace, "settings"), db))
		create(t, c, ownedBy(configMap(namespace, "replica"), replica))
		namespaces, delivered = append(namespaces, namespace), append(delivered, db)
		branch, trunk := "├─ ", "│  "
		if i == count-1 {
			branch, trunk = "└─ ", "   "
		}
		want = append(want, branch+"Database/db Current", trunk+"├─ ConfigMap/settings Current",
			trunk+"└─ Replica/one Current", trunk+"   └─ ConfigMap/replica Current")
	}
	create(t, c, delivering(namespaces[0], "many", delivered...))
	return namespaces, want
}

// The number of namespaces does not multiply the requests: a cluster is asked once for its kinds, and
// from some namespaces on, once for the objects of each.
func TestTree_ownedInManyNamespaces(t *testing.T) {
	cluster := user(t)
	const count = 20
	namespaces, want := databasesIn(t, cluster, count)
	mark, err := cluster.AuditMark(t.Context())
	require.NoError(t, err)
	got := waybill(t, cluster, "tree", "gitsync/many", "-n", namespaces[0])
	require.Equal(t, 0, got.code, got.errOut)
	assert.Empty(t, got.errOut)
	assert.Equal(t, want, lines(got.out), got.out)

	requests, err := cluster.Requests(t.Context(), mark, func(r env.Request) bool { return strings.HasPrefix(r.UserAgent, "waybill/") })
	require.NoError(t, err)
	lists, discoveries := map[string]int{}, 0
	for _, r := range requests {
		path, err := url.Parse(r.URI)
		require.NoError(t, err)
		switch {
		case r.Verb == "list":
			lists[r.Group+"/"+r.Resource]++
		case path.Path == "/api":
			discoveries++
		}
	}
	assert.LessOrEqual(t, discoveries, 2, "one for the version of what is delivered, and one for all kinds")
	assert.NotEmpty(t, lists["/secrets"])
	for resource, n := range lists {
		assert.LessOrEqual(t, n, 10, resource)
	}
}

// A40: who may list a kind in some namespaces, but not in the whole cluster, sees as much as there is.
func TestTree_ownedInManyNamespacesWithFewRights(t *testing.T) {
	cluster := user(t)
	namespaces, want := databasesIn(t, cluster, 10)
	rights := []rbacv1.PolicyRule{
		right(v1alpha1.Group, []string{"gitsyncs"}, "get", "list"),
		right(databases, []string{"databases", "replicas"}, "get", "list"),
		right("", []string{"configmaps"}, "get", "list"),
	}
	kubeconfig, _ := userWith(t, cluster, namespaces[0], rights...)
	for _, namespace := range namespaces[1:] {
		grant(t, cluster, namespaces[0], namespace, rights...)
	}
	got := waybillWith(t, "", "tree", "gitsync/many", "-n", namespaces[0], "--kubeconfig", kubeconfig)
	require.Equal(t, 0, got.code, got.errOut)
	assert.Equal(t, want, lines(got.out), got.out)
	assert.Regexp(t, `(?m)^warning: what objects own is not complete: you may not list .* and \d+ other kinds in the namespaces test-\S+, .* of cluster \S+$`, got.errOut)
	assert.Equal(t, 2, strings.Count(got.errOut, "\n"), "one warning, beside that of the user clusters: %s", got.errOut)
}

// What a cluster-scoped object owns is anywhere in the cluster.
func TestTree_ownedByClusterScopedObjects(t *testing.T) {
	cluster := user(t)
	c, one, two := clientOf(t, cluster), cluster.Namespace(t), cluster.Namespace(t)
	pool := custom("", "Pool", one)
	create(t, c, pool)
	child, db := ownedBy(custom("", "Pool", one+"-child"), pool), ownedBy(custom(one, "Database", "db"), pool)
	create(t, c, child, db, ownedBy(configMap(two, "settings"), pool))
	create(t, c, ownedBy(custom(one, "Replica", "one"), db), ownedBy(configMap(two, "child"), child), delivering(one, "pools", pool))

	got := waybill(t, cluster, "tree", "gitsync/pools", "-n", one)
	require.Equal(t, 0, got.code, got.errOut)
	assert.Equal(t, []string{
		"GitSync/pools InProgress",
		"└─ Pool/" + one + " Current",
		"   ├─ ConfigMap/settings Current",
		"   ├─ Database/db Current",
		"   │  └─ Replica/one Current",
		"   └─ Pool/" + child.GetName() + " Current",
		"      └─ ConfigMap/child Current",
	}, lines(got.out), got.out)

	create(t, c,
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: one}, Rules: []rbacv1.PolicyRule{right(databases, []string{"pools"}, "get", "list")}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: one},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: one},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: one}},
		})
	kubeconfig, _ := userWith(t, cluster, one, right(v1alpha1.Group, []string{"gitsyncs"}, "get", "list"))
	require.Eventually(t, func() bool {
		got = waybillWith(t, "", "tree", "gitsync/pools", "-n", one, "--kubeconfig", kubeconfig)
		return !strings.Contains(got.out, "forbidden")
	}, limit, often)
	assert.Equal(t, []string{"GitSync/pools InProgress", "└─ Pool/" + one + " Current", "   └─ Pool/" + child.GetName() + " Current"}, lines(got.out), got.out)
	assert.Regexp(t, `(?m)^warning: what objects own is not complete: you may not list .* and \d+ other kinds in all namespaces of cluster \S+$`, got.errOut)
	assert.Equal(t, 2, strings.Count(got.errOut, "\n"), "one warning, beside that of the user clusters: %s", got.errOut)
}
