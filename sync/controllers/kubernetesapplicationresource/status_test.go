package kubernetesapplicationresource_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

// widgets are objects of a kind that only the user cluster knows.
var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

const widgetDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: PLURAL.example.com}
spec:
  group: example.com
  scope: SCOPE
  names: {plural: PLURAL, singular: SINGULAR, kind: KIND, listKind: KINDList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// define makes a kind known to the user cluster.
func (u *user) define(kind, scope string) {
	u.T.Helper()
	singular := strings.ToLower(kind)
	text := strings.NewReplacer("PLURAL", singular+"s", "SINGULAR", singular, "KIND", kind, "SCOPE", scope).Replace(widgetDefinition)
	u.Create(parse(u.T, text))
}

func (u *user) widget(name string) string {
	return "{apiVersion: example.com/v1, kind: Widget, metadata: {name: " + name + ", namespace: " + u.Namespace + "}, spec: {size: 1}}"
}

// setStatus writes the status of a widget as its controller would.
func (u *user) setStatus(name, patch string) {
	u.T.Helper()
	c, err := dynamic.NewForConfig(u.Cluster.RESTConfig())
	require.NoError(u.T, err)
	_, err = c.Resource(widgets).Namespace(u.Namespace).Patch(u.T.Context(), name, types.MergePatchType, []byte(patch),
		metav1.PatchOptions{FieldManager: "controller"}, "status")
	require.NoError(u.T, err)
}

func (w *world) awaitRemote(kar *v1alpha1.KubernetesApplicationResource, want string) {
	w.T.Helper()
	hub.Await(w.World, kar, "status.remote is not "+want, func(k *v1alpha1.KubernetesApplicationResource) bool {
		return k.Status.Remote != nil && string(k.Status.Remote.Raw) == want
	})
}

// W19, W20: a status is shown of our own object alone.
func TestResource_showsNoStatusOfWhatIsNotOurs(t *testing.T) {
	w := newWorld(t)
	kar := hub.AwaitReady(w.World, w.submit(w.resource("web", w.berlin.service("web"))))
	w.awaitRemote(kar, `{"loadBalancer":{}}`)
	hub.Change(w.berlin.World, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: w.berlin.Namespace, Name: "web"}}, func(s *corev1.Service) {
		s.Annotations[v1alpha1.OwnerAnnotation] = "other-hub/GitSync/a/b"
	})
	hub.AwaitReason(w.World, kar, v1alpha1.ObjectConflictReason)
	hub.Await(w.World, kar, "the status is that of another's object", func(k *v1alpha1.KubernetesApplicationResource) bool { return k.Status.Remote == nil })
}

// W19: a status that changes all the time costs the hub a few writes a second, and the last of
// its changes is shown.
func TestResource_gathersChangesOfAStatus(t *testing.T) {
	w := newWorld(t)
	kar := hub.AwaitReady(w.World, w.submit(w.resource("web", w.berlin.service("web"))))
	w.awaitRemote(kar, `{"loadBalancer":{}}`)
	live := &corev1.Service{}
	require.True(t, w.berlin.Exists(live, "web"))
	before, start := w.count(), time.Now()
	const changes = 200
	for i := range changes {
		live.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{Hostname: fmt.Sprintf("web-%d.example.com", i)}}
		require.NoError(t, w.berlin.Client.Status().Update(t.Context(), live))
	}
	w.awaitRemote(kar, fmt.Sprintf(`{"loadBalancer":{"ingress":[{"hostname":"web-%d.example.com"}]}}`, changes-1))
	most := int(time.Since(start)/(200*time.Millisecond)) + 2
	assert.LessOrEqual(t, len(before.onHub()), most, "one in 200 ms")
}

// W19: the status of an object that is refused changes: it is shown, and is no reason to have the
// object be refused once more.
func TestResource_statusOfWhatIsRefused(t *testing.T) {
	w := newWorld(t)
	kar := hub.AwaitReady(w.World, w.submit(w.resource("web", w.berlin.service("web"))))
	hub.Change(w.World, kar, func(k *v1alpha1.KubernetesApplicationResource) {
		k.Spec.Template = template(t, strings.Replace(w.berlin.service("web"), "port: 80", "port: 70000", 1))
	})
	hub.AwaitReason(w.World, kar, v1alpha1.ApplyFailedReason)
	live := &corev1.Service{}
	require.True(t, w.berlin.Exists(live, "web"))
	before, err := w.berlin.Cluster.AuditMark(t.Context())
	require.NoError(t, err)
	const changes = 60
	for i := range changes {
		live.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{Hostname: fmt.Sprintf("web-%d.example.com", i)}}
		require.NoError(t, w.berlin.Client.Status().Update(t.Context(), live))
	}
	w.awaitRemote(kar, fmt.Sprintf(`{"loadBalancer":{"ingress":[{"hostname":"web-%d.example.com"}]}}`, changes-1))
	refused, err := w.berlin.Cluster.Requests(t.Context(), before, func(q env.Request) bool {
		return strings.Contains(q.User, hub.Identity) && q.Namespace == w.berlin.Namespace && q.Verb == "patch"
	})
	require.NoError(t, err)
	assert.LessOrEqual(t, len(refused), 8, "the back-off doubles: this many are two minutes")
}

// W1, W2, W19-W21, W43, W44: the status of a kind that the hub has never heard of.
func TestResource_showsTheStatusOfItsObject(t *testing.T) {
	w := newWorld(t)
	w.berlin.define("Widget", "Namespaced")
	kar := hub.AwaitReady(w.World, w.submit(w.resource("web", w.berlin.widget("web"))))
	assert.Nil(t, kar.Status.Remote)

	w.berlin.setStatus("web", `{"status":{"phase":"Ready","count":3,"nested":{"ratio":0.5,"list":[1,"<a>",{"b":true}]}}}`)
	w.awaitRemote(kar, `{"count":3,"nested":{"list":[1,"\u003ca\u003e",{"b":true}],"ratio":0.5},"phase":"Ready"}`)
	w.berlin.setStatus("web", `{"status":{"nested":null,"count":4}}`)
	w.awaitRemote(kar, `{"count":4,"phase":"Ready"}`)
	w.berlin.setStatus("web", `{"status":null}`)
	hub.Await(w.World, kar, "status.remote stays", func(k *v1alpha1.KubernetesApplicationResource) bool { return k.Status.Remote == nil })

	t.Run("TooLarge", func(t *testing.T) { // C58
		w.berlin.setStatus("web", `{"status":{"text":"`+strings.Repeat("x", 65<<10)+`"}}`)
		hub.Await(w.World, kar, "it is not said that the status is too large", func(k *v1alpha1.KubernetesApplicationResource) bool {
			return conditions.IsTrue(k, v1alpha1.RemoteStatusTooLargeCondition)
		})
		assert.Nil(t, kar.Status.Remote)
		assert.True(t, conditions.IsReady(kar), "it is submitted all the same")
		w.berlin.setStatus("web", `{"status":{"text":"short"}}`)
		w.awaitRemote(kar, `{"text":"short"}`)
		assert.False(t, conditions.Has(kar, v1alpha1.RemoteStatusTooLargeCondition))
	})
	t.Run("AnotherObject", func(t *testing.T) {
		object := parse(t, w.berlin.widget("web"))
		require.NoError(t, w.berlin.Client.Delete(t.Context(), object))
		hub.Await(w.World, kar, "the status is that of the object which is gone", func(k *v1alpha1.KubernetesApplicationResource) bool { return k.Status.Remote == nil })
	})
}
