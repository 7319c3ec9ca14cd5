package apply_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/manifest"
)

// newRestricted applies with rights in one namespace alone.
func newRestricted(t *testing.T, rules ...rbacv1.PolicyRule) *fixture {
	t.Helper()
	user, config := newUser(t)
	f := newFixtureAs(t, shared(t), config)
	f.user = user
	f.grant(rules...)
	return f
}

// newUser is one that no other test grants anything.
func newUser(t *testing.T) (string, *rest.Config) {
	t.Helper()
	name := names.SimpleNameGenerator.GenerateName("restricted-")
	config, err := shared(t).AddUser(name)
	require.NoError(t, err)
	return name, config
}

// grant gives the fixture's user rights in the fixture's namespace, and returns when they are in
// force: what is refused once is not asked for again soon.
func (f *fixture) grant(rules ...rbacv1.PolicyRule) {
	f.t.Helper()
	admin, err := kubernetes.NewForConfig(f.cluster.RESTConfig())
	require.NoError(f.t, err)
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{GenerateName: "restricted-"}, Rules: rules}
	role, err = admin.RbacV1().Roles(f.namespace).Create(f.t.Context(), role, metav1.CreateOptions{})
	require.NoError(f.t, err)
	_, err = admin.RbacV1().RoleBindings(f.namespace).Create(f.t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: f.user}},
	}, metav1.CreateOptions{})
	require.NoError(f.t, err)
	f.cluster.AwaitGranted(f.t, f.user, f.namespace, rules...)
}

// grantEverywhere gives a user rights in all namespaces until the end of the test, and returns when
// they are in force, with what takes some of them away again: it leaves others in their place.
func (f *fixture) grantEverywhere(user string, rules ...rbacv1.PolicyRule) func(...rbacv1.PolicyRule) {
	f.t.Helper()
	admin, err := kubernetes.NewForConfig(f.cluster.RESTConfig())
	require.NoError(f.t, err)
	roles, bindings := admin.RbacV1().ClusterRoles(), admin.RbacV1().ClusterRoleBindings()
	role, err := roles.Create(f.t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}, Rules: rules}, metav1.CreateOptions{})
	require.NoError(f.t, err)
	_, err = bindings.Create(f.t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: f.namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: f.namespace},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	require.NoError(f.t, err)
	f.t.Cleanup(func() {
		_ = bindings.Delete(cleanup(f.t), f.namespace, metav1.DeleteOptions{})
		_ = roles.Delete(cleanup(f.t), f.namespace, metav1.DeleteOptions{})
	})
	f.cluster.AwaitGranted(f.t, user, "", rules...)
	return func(rules ...rbacv1.PolicyRule) {
		role.Rules = rules
		role, err = roles.Update(f.t.Context(), role, metav1.UpdateOptions{})
		require.NoError(f.t, err)
	}
}

func mayDo(verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: verbs}
}

// C37: one who may do everything in one namespace is as well off there as any other.
func TestRights_oneNamespace(t *testing.T) {
	f := newRestricted(t, mayDo("*"))
	objects := configMaps(t, 10)
	inventory := f.mustApply(nil, objects...).Inventory
	f.requests.take()
	f.mustApply(inventory, objects...)
	assert.Empty(t, f.requests.take())

	f.edit("configmaps", "settings-003", `{"data":{"key":"edited"}}`)
	f.awaitNotice()
	f.mustApply(inventory, objects...)
	assert.Len(t, f.requests.take(), 1)

	result := f.apply(inventory, parse(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+f.namespace+"-x}}"), objects[0])
	require.NoError(t, result.Err)
	require.Len(t, result.Problems, 1)
	assert.Equal(t, apply.ReasonForbidden, result.Problems[0].Reason)
	assert.Contains(t, result.Problems[0].Message, `User "`+f.user+`" cannot get resource "namespaces"`)
}

// C37: without the right to watch, everything is applied each time, and it is said
// that nothing is watched.
func TestRights_noWatch(t *testing.T) {
	f := newRestricted(t, mayDo("get", "create", "patch", "delete"))
	object := configMap(t, "settings", "one")
	require.True(t, clean(f.apply(nil, object)))
	f.requests.take()
	result := f.apply(nil, object)
	require.True(t, clean(result))
	require.Len(t, result.Warnings, 1)
	assert.Equal(t, manifest.Problem{
		ID:     manifest.ID{Version: "v1", Kind: "ConfigMap", Namespace: f.namespace},
		Reason: apply.ReasonNotWatched,
		Message: "edits and deletions by others are corrected only at the next reconciliation: " +
			`configmaps is forbidden: User "` + f.user + `" cannot list resource "configmaps" in API group "" in the namespace "` + f.namespace + `"`,
	}, result.Warnings[0])
	assert.True(t, result.Unseen)
	assert.Len(t, f.requests.take(), 2, "a look whose it is, and the apply")

	f.edit("configmaps", "settings", `{"data":{"key":"edited"}}`)
	result = f.apply(result.Inventory, object)
	require.True(t, clean(result))
	assert.Equal(t, []apply.Change{{ID: result.Inventory[0], Action: apply.Corrected}}, result.Changes)
	assert.Equal(t, "one", f.value("settings"))

	f.create("configmaps", configMap(t, "foreign", "one"))
	conflict := f.apply(result.Inventory, object, configMap(t, "foreign", "two"))
	require.Len(t, conflict.Problems, 1)
	assert.Equal(t, apply.ReasonConflict, conflict.Problems[0].Reason)

	pruned := f.apply(result.Inventory)
	require.True(t, clean(pruned))
	assert.Empty(t, pruned.Inventory)
	assert.Nil(t, f.live("configmaps", "settings"))
}

// C37, C53: a right to watch that is granted later takes effect by itself, and an owner that delivered, or
// had Helm deliver, what was not watched is notified.
func TestRights_watchIsGrantedLater(t *testing.T) {
	f := newRestricted(t, mayDo("get", "create", "patch", "delete"))
	object := configMap(t, "settings", "one")
	require.Len(t, f.apply(nil, object).Warnings, 1)
	helms := *f
	helms.owner.Name += "-helm"
	id := helms.released("configmaps", configMap(t, "released", "one"))
	watched := apply.Watched{IDs: []manifest.ID{id}}
	warnings, err := f.Watch(t.Context(), helms.owner, watched)
	require.NoError(t, err)
	require.Len(t, warnings, 1)
	assert.Equal(t, apply.ReasonNotWatched, warnings[0].Reason)
	assert.False(t, f.Covers(warnings[0].ID))
	t.Cleanup(func() { f.Forget(helms.owner) })

	f.grant(mayDo("*"))
	f.awaitNotices(f.owner, helms.owner)
	assert.True(t, f.Covers(warnings[0].ID))
	f.mustApply(nil, object)
	watched.Anew = watched.IDs
	helms.mustWatch(watched)

	f.drain()
	f.edit("configmaps", "settings", `{"data":{"key":"edited"}}`)
	f.edit("configmaps", "released", `{"data":{"key":"edited"}}`)
	f.awaitNotices(f.owner, helms.owner)
}

// awaitNotices waits until each of some owners was notified.
func (f *fixture) awaitNotices(owners ...apply.Owner) {
	f.t.Helper()
	for told := map[apply.Owner]bool{}; len(told) < len(owners); {
		told[f.nextNotice()] = true
	}
}

// A namespace that may not be watched comes unseen.
func TestRights_namespaceIsNotWatched(t *testing.T) {
	f := newRestricted(t, mayDo("*"))
	f.grantEverywhere(f.user, mayDo("*"))
	name := f.namespace + "-late"
	object := parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: "+name+"}}")
	result := f.apply(nil, object)
	require.Len(t, result.Problems, 1)
	assert.Equal(t, apply.ReasonNamespaceNotFound, result.Problems[0].Reason)
	assert.Len(t, result.Waiting, 1)
	assert.True(t, result.Unseen)
}

// Who may not read may not take over anything either.
func TestRights_writeOnly(t *testing.T) {
	f := newRestricted(t, mayDo("create", "patch"))
	result := f.apply(nil, configMap(t, "settings", "one"))
	require.Len(t, result.Problems, 1)
	assert.Equal(t, apply.ReasonForbidden, result.Problems[0].Reason)
	assert.Contains(t, result.Problems[0].Message, `User "`+f.user+`" cannot get resource "configmaps"`)
	assert.Nil(t, f.live("configmaps", "settings"))
}

// A kubeconfig that may not impersonate is no matter of single objects.
func TestRights_impersonationForbidden(t *testing.T) {
	cluster := shared(t)
	config, err := cluster.AddUser("powerless")
	require.NoError(t, err)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:team:default"}
	f := newFixtureAs(t, cluster, config)
	result := f.apply(nil, configMaps(t, 10)...)
	require.ErrorContains(t, result.Err, "as where the right to impersonate is missing")
	assert.Empty(t, result.Problems)
	assert.Len(t, result.Inventory, 10)
}

func TestRights_unknownCredentials(t *testing.T) {
	cluster := shared(t)
	config := cluster.RESTConfig()
	config.CertData, config.KeyData, config.BearerToken = nil, nil, "expired"
	f := newFixtureAs(t, cluster, config)
	result := f.apply(nil, configMaps(t, 10)...)
	require.Error(t, result.Err)
	assert.Contains(t, result.Err.Error(), "provide credentials")
	assert.Empty(t, result.Problems)
}

// C60: who writes an object may be another than who watches it: what that one may not is refused, and
// what has no other owner is the Applier's own.
func TestRights_ofAnotherWriter(t *testing.T) {
	f := newRestricted(t, mayDo("get", "patch", "create"))
	restricted := f.target
	f.target = newTarget(t, f.cluster.RESTConfig())
	f.restart()
	as := func(id manifest.ID) apply.Target {
		if id.Name == "own" {
			return nil
		}
		return restricted
	}
	request := f.request(nil, configMap(t, "own", "one"), configMap(t, "settings", "one"),
		parse(t, "{apiVersion: v1, kind: Secret, metadata: {name: secret}}"))
	request.As = as
	f.requests.take()
	result := f.Apply(t.Context(), request)
	require.NoError(t, result.Err)
	require.Len(t, result.Problems, 1)
	assert.Equal(t, apply.ReasonForbidden, result.Problems[0].Reason)
	assert.Contains(t, result.Problems[0].Message, `User "`+f.user+`" cannot`)
	assert.NotEmpty(t, f.requests.take(), "written as the other")
	assert.Equal(t, "one", f.value("settings"))
	assert.Equal(t, "one", f.value("own"))

	result = f.DeleteAs(t.Context(), f.owner, result.Inventory, as)
	require.NoError(t, result.Err)
	require.Len(t, result.Problems, 2, "both that are not its own")
	assert.Contains(t, result.Problems[0].Message, `User "`+f.user+`" cannot delete resource "configmaps"`)
	assert.NotNil(t, f.live("configmaps", "settings"))
	assert.Nil(t, f.live("configmaps", "own"))
}
