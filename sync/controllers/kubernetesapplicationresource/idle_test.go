package kubernetesapplicationresource_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

// requests counts what the controller asks of the hub and of the user cluster because of a
// test.
type requests struct {
	w         *world
	hub, user env.AuditMark
}

func (w *world) count() requests {
	w.T.Helper()
	onHub, err := w.Cluster.AuditMark(w.T.Context())
	require.NoError(w.T, err)
	inUser, err := w.berlin.Cluster.AuditMark(w.T.Context())
	require.NoError(w.T, err)
	return requests{w, onHub, inUser}
}

func (r requests) of(u *hub.World, since env.AuditMark) []string {
	r.w.T.Helper()
	got, err := u.Cluster.Requests(r.w.T.Context(), since, env.Calls, env.Accepted, func(q env.Request) bool {
		return strings.Contains(q.User, hub.Identity) && q.Namespace == u.Namespace && q.Resource != "events"
	})
	require.NoError(r.w.T, err)
	var list []string
	for _, q := range got {
		list = append(list, strings.Join([]string{q.Verb, q.Resource, q.Subresource, q.Name}, " "))
	}
	return list
}

func (r requests) onHub() []string  { return r.of(r.w.World, r.hub) }
func (r requests) inUser() []string { return r.of(r.w.berlin.World, r.user) }

// One resource costs an apply, a finalizer and a status; nothing more.
func TestIdle_whatASubmissionCosts(t *testing.T) {
	w := newWorld(t)
	hub.AwaitReady(w.World, w.submit(w.resource("warm-up", w.berlin.configMap("warm-up", "x"))))
	before := w.count()
	kar := hub.AwaitReady(w.World, w.submit(w.resource("web", w.berlin.configMap("web", "x"))))
	assert.ElementsMatch(t, []string{"patch kubernetesapplicationresources  web", "patch kubernetesapplicationresources status web"}, before.onHub())
	assert.ElementsMatch(t, []string{"patch configmaps  web"}, before.inUser())

	before = w.count()
	hub.Change(w.World, kar, func(k *v1alpha1.KubernetesApplicationResource) {
		k.Spec.Template = template(t, w.berlin.configMap("web", "y"))
	})
	hub.AwaitReady(w.World, kar)
	assert.Equal(t, []string{"patch kubernetesapplicationresources status web"}, before.onHub(), "one write per change")
	assert.Equal(t, []string{"patch configmaps  web"}, before.inUser())
}

// C41: the copies of Secrets are recorded before they are made.
func TestIdle_whatSecretsCost(t *testing.T) {
	w := newWorld(t)
	w.secret("mysql", "one")
	hub.AwaitReady(w.World, w.submit(w.resource("warm-up", w.berlin.configMap("warm-up", "x"), "mysql")))
	before := w.count()
	hub.AwaitReady(w.World, w.submit(w.resource("web", w.berlin.configMap("web", "x"), "mysql")))
	status := "patch kubernetesapplicationresources status web"
	assert.ElementsMatch(t, []string{"patch kubernetesapplicationresources  web", status, status}, before.onHub(), "the Secret itself is read once")
	assert.ElementsMatch(t, []string{"patch configmaps  web", "patch secrets  web-mysql"}, before.inUser())
}

// A status that changed is one write on the hub, and no request in the cluster.
func TestIdle_whatAStatusCosts(t *testing.T) {
	w := newWorld(t)
	kar := hub.AwaitReady(w.World, w.submit(w.resource("web", w.berlin.service("web"))))
	w.awaitRemote(kar, `{"loadBalancer":{}}`)
	live := &corev1.Service{}
	require.True(t, w.berlin.Exists(live, "web"))
	before := w.count()
	live.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{Hostname: "example.com"}}
	require.NoError(t, w.berlin.Client.Status().Update(t.Context(), live))
	w.awaitRemote(kar, `{"loadBalancer":{"ingress":[{"hostname":"example.com"}]}}`)
	assert.Equal(t, []string{"patch kubernetesapplicationresources status web"}, before.onHub())
	assert.Empty(t, before.inUser())
}

// Asking for a reconciliation when nothing changed costs the status that says it was handled.
func TestIdle_nothingChanged(t *testing.T) {
	w := newWorld(t)
	w.secret("mysql", "one")
	kar := hub.AwaitReady(w.World, w.submit(w.resource("web", w.berlin.service("web"), "mysql")))
	w.awaitRemote(kar, `{"loadBalancer":{}}`)
	before := w.count()
	hub.Reconcile(w.World, kar)
	assert.Equal(t, []string{"patch kubernetesapplicationresources status web"}, before.onHub())
	assert.Empty(t, before.inUser())
}
