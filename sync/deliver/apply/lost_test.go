package apply_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/manifest"
)

// revoke leaves rules to the fixture's user in place of what it was granted.
func (f *fixture) revoke(rules ...rbacv1.PolicyRule) {
	f.t.Helper()
	admin, err := kubernetes.NewForConfig(f.cluster.RESTConfig())
	require.NoError(f.t, err)
	roles, err := admin.RbacV1().Roles(f.namespace).List(f.t.Context(), metav1.ListOptions{})
	require.NoError(f.t, err)
	for i := range roles.Items {
		roles.Items[i].Rules = rules
		_, err = admin.RbacV1().Roles(f.namespace).Update(f.t.Context(), &roles.Items[i], metav1.UpdateOptions{})
		require.NoError(f.t, err)
	}
}

// drain forgets the notices so far.
func (f *fixture) drain() {
	for len(f.notified) > 0 {
		<-f.notified
	}
}

// C37: the right to watch is taken away. The owner is notified, and that no watch sees drift any more
// is said, rather than that all is well. Once the right is back, so is the watch, and the owner is
// notified: what Helm wrote is never applied, so that no apply would ask for it.
func TestLost_rightToWatch(t *testing.T) {
	user, config := newUser(t)
	f, gate := newGatedAs(t, config)
	f.user = user
	f.grant(mayDo("*"))
	object := configMap(t, "settings", "one")
	f.mustApply(nil, object)
	f.drain()

	gate.Shut()
	f.revoke(mayDo("get", "create", "patch", "delete"))
	f.cluster.AwaitRevoked(t, user, f.namespace, mayDo("list", "watch"))
	require.NoError(t, gate.Open())
	f.awaitNotice()
	seen, known := f.Observe(f.owner)
	require.True(t, known)
	assert.False(t, seen.Settled)
	result := f.until(f.request(nil, object), clean)
	require.Len(t, result.Warnings, 1)
	assert.Equal(t, apply.ReasonNotWatched, result.Warnings[0].Reason)
	assert.True(t, result.Unseen, "to look again now and then is left to the owner")
	assert.Empty(t, f.notified, "once is enough")

	f.edit("configmaps", "settings", `{"data":{"key":"edited"}}`)
	f.revoke(mayDo("*"))
	assert.Equal(t, result.Inventory, f.awaitDrift(), "what no watch saw is seen")
}

// C37, C53: the right to watch all namespaces is taken away, and then that to watch the one. What Helm
// wrote is watched with the rights that are left once a caller asks for it.
func TestLost_rightToWatchEverywhere(t *testing.T) {
	user, config := newUser(t)
	f, gate := newGatedAs(t, config)
	f.user = user
	f.grant(mayDo("*"))
	change := f.grantEverywhere(user, mayDo("*"))
	id := f.released("configmaps", configMap(t, "released", "one"))
	watched := apply.Watched{IDs: []manifest.ID{id}}
	f.mustWatch(watched)
	f.drain()

	gate.Shut()
	change(mayDo("get"))
	f.cluster.AwaitRevoked(t, user, "", mayDo("list", "watch"))
	require.NoError(t, gate.Open())
	f.awaitNotice()
	scope := manifest.ID{Version: "v1", Kind: "ConfigMap", Namespace: f.namespace}
	seen, _ := f.Observe(f.owner)
	assert.Equal(t, []manifest.ID{scope}, seen.Unwatched)
	f.mustWatch(watched)
	seen, _ = f.Observe(f.owner)
	assert.Empty(t, seen.Unwatched)
	f.drain()
	f.edit("configmaps", "released", `{"data":{"key":"edited"}}`)
	assert.Equal(t, watched.IDs, f.awaitDrift())

	f.drain()
	gate.Shut()
	f.revoke(mayDo("get"))
	f.cluster.AwaitRevoked(t, user, f.namespace, mayDo("list", "watch"))
	require.NoError(t, gate.Open())
	f.awaitNotice()
	warnings, err := f.Watch(t.Context(), f.owner, watched)
	require.NoError(t, err)
	require.Len(t, warnings, 1)
	seen, _ = f.Observe(f.owner)
	assert.Equal(t, []manifest.ID{warnings[0].ID}, seen.Unwatched, "the warnings name it alike")
	assert.Empty(t, f.notified, "once is enough")
}

// C57: a kind is not served any more, and its objects are still there.
func TestLost_kindIsNotServedAnyMore(t *testing.T) {
	f, gate := newGated(t)
	crd, custom := definition(t, f)
	_, err := f.admin.dynamic.Resource(definitions).Create(t.Context(), crd.Unstructured, metav1.CreateOptions{})
	require.NoError(t, err)
	request := f.request(nil, custom)
	f.until(request, clean)
	f.drain()

	gate.Shut()
	f.serve(crd, false)
	require.NoError(t, gate.Open())
	f.awaitNotice()
	result := f.until(request, func(r apply.Result) bool { return r.Err == nil && len(r.Problems) == 1 })
	assert.Equal(t, apply.ReasonKindNotFound, result.Problems[0].Reason)
	assert.Equal(t, result.Inventory, result.Waiting)
	seen, _ := f.Observe(f.owner)
	assert.Empty(t, seen.Statuses)

	f.serve(crd, true)
	f.until(request, clean)
}

// serve has a kind served in version v2, and in v1 or not.
func (f *fixture) serve(crd manifest.Object, v1 bool) {
	f.t.Helper()
	text := fmt.Sprintf(`{"spec":{"versions":[{"name":"v1","served":%t,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}},`+
		`{"name":"v2","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`, v1)
	_, err := f.admin.dynamic.Resource(definitions).Patch(f.t.Context(), crd.GetName(), mergePatch, []byte(text), metav1.PatchOptions{})
	require.NoError(f.t, err)
}

// No watch reports any more on a Namespace that is waited for.
func TestLost_rightToWatchNamespaces(t *testing.T) {
	user, config := newUser(t)
	f, gate := newGatedAs(t, config)
	onNamespaces := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list", "watch"}}
	change := f.grantEverywhere(user, mayDo("*"), onNamespaces)
	name := f.namespace + "-late"
	object := parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: "+name+"}}")
	result := f.apply(nil, object)
	require.Len(t, result.Problems, 1)
	require.Equal(t, apply.ReasonNamespaceNotFound, result.Problems[0].Reason)
	require.False(t, result.Unseen)

	f.drain()
	gate.Shut()
	change(mayDo("*"))
	f.cluster.AwaitRevoked(t, user, "", onNamespaces)
	require.NoError(t, gate.Open())
	f.awaitNotice()
	result = f.until(f.request(nil, object), func(r apply.Result) bool { return r.Unseen })
	assert.Len(t, result.Waiting, 1)
}
