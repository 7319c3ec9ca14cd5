package kubernetesapplicationresource_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// What happened while no process ran is caught up with: the status, an edit, another template,
// a Secret that the spec names no more.
func TestRestart_catchesUp(t *testing.T) {
	w := newOwnWorld(t)
	w.restart()
	t.Cleanup(w.stop)
	w.secret("mysql", "one")
	service := hub.AwaitReady(w.World, w.submit(w.resource("service", w.berlin.service("service"))))
	w.awaitRemote(service, `{"loadBalancer":{}}`)
	kar := hub.AwaitReady(w.World, w.submit(w.resource("web", w.berlin.configMap("web", "one"), "mysql")))
	w.stop()

	live := &corev1.Service{}
	require.True(t, w.berlin.Exists(live, "service"))
	live.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{Hostname: "example.com"}}
	require.NoError(t, w.berlin.Client.Status().Update(t.Context(), live))
	cm := w.berlin.awaitValue("web", "one")
	cm.Data["key"] = "edited"
	require.NoError(t, w.berlin.Client.Update(t.Context(), cm))
	hub.Change(w.World, kar, func(k *v1alpha1.KubernetesApplicationResource) { k.Spec.Secrets = nil })

	w.restart()
	w.awaitRemote(service, `{"loadBalancer":{"ingress":[{"hostname":"example.com"}]}}`)
	w.berlin.awaitValue("web", "one")
	w.berlin.AwaitGone(&corev1.Secret{}, "web-mysql")
}

// A start is no news: the hub is not written to, and in the cluster each object is applied once.
func TestRestart_saysNothingNew(t *testing.T) {
	w := newOwnWorld(t)
	w.restart()
	t.Cleanup(w.stop)
	w.secret("mysql", "one")
	kar := hub.AwaitReady(w.World, w.submit(w.resource("web", w.berlin.service("web"), "mysql")))
	w.awaitRemote(kar, `{"loadBalancer":{}}`)
	w.stop()
	before := w.count()
	w.restart()
	require.True(t, w.Eventually(func() bool { return len(before.inUser()) == 2 }), "it is applied once more")
	hub.Reconcile(w.World, kar)
	assert.ElementsMatch(t, []string{"patch services  web", "patch secrets  web-mysql"}, before.inUser())
	assert.Equal(t, []string{"get secrets  mysql", "patch kubernetesapplicationresources status web"}, before.onHub(), "but for the request that was handled")
}

// C41: killed when only the intent had been recorded. The spec names other Secrets by the time
// that the next process runs.
func TestRestart_knowsWhatWasBegun(t *testing.T) {
	w := newOwnWorld(t)
	w.restart()
	t.Cleanup(w.stop)
	w.secret("mysql", "one")
	kar := hub.AwaitReady(w.World, w.submit(w.resource("web", w.berlin.configMap("web", "one"), "mysql")))
	w.stop()
	w.setStatus(kar, `{"conditions":null,"state":"Scheduled","namespace":null}`)
	hub.Change(w.World, kar, func(k *v1alpha1.KubernetesApplicationResource) { k.Spec.Secrets = nil })
	w.restart()
	w.berlin.AwaitGone(&corev1.Secret{}, "web-mysql")
	hub.AwaitReady(w.World, kar)
}

// setStatus puts a status back to what it was when a process was killed.
func (w *world) setStatus(kar *v1alpha1.KubernetesApplicationResource, status string) {
	w.T.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"status":`+status+`}`))
	require.NoError(w.T, w.Client.Status().Patch(w.T.Context(), kar, patch))
}

// C41: killed after the object was made and before anything was recorded: what it is called
// stands in the spec.
func TestRestart_nothingWasRecorded(t *testing.T) {
	w := newOwnWorld(t)
	w.restart()
	t.Cleanup(w.stop)
	kar := hub.AwaitReady(w.World, w.submit(w.resource("web", w.berlin.configMap("web", "one"))))
	w.stop()
	w.setStatus(kar, `{"conditions":null,"state":"Pending","namespace":null,"inventory":null}`)
	require.NoError(t, w.Client.Delete(t.Context(), kar))
	w.restart()
	w.AwaitGone(kar, "web")
	assert.False(t, w.berlin.Exists(&corev1.ConfigMap{}, "web"))
}

// C13: a hub that was restored from a backup, with new UIDs, takes up what it had made.
func TestRestart_restoredWithNewUIDs(t *testing.T) {
	w := newOwnWorld(t)
	w.restart()
	t.Cleanup(w.stop)
	w.secret("mysql", "one")
	kar := hub.AwaitReady(w.World, w.submit(w.resource("web", w.berlin.configMap("web", "one"), "mysql")))
	uid := w.berlin.awaitValue("web", "one").UID
	w.stop()
	hub.Change(w.World, kar, func(k *v1alpha1.KubernetesApplicationResource) { k.Finalizers = nil })
	require.NoError(t, w.Client.Delete(t.Context(), kar))
	w.AwaitGone(kar, "web")

	restored := w.submit(w.resource("web", w.berlin.configMap("web", "one"), "mysql"))
	require.NotEqual(t, kar.UID, restored.UID)
	w.restart()
	hub.AwaitReady(w.World, restored)
	cm := w.berlin.awaitValue("web", "one")
	assert.Equal(t, uid, cm.UID)
	assert.Equal(t, string(restored.UID), cm.Annotations[v1alpha1.ResourceUIDAnnotation])
}
