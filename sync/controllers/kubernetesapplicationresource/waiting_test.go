package kubernetesapplicationresource_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// W26, W54: order is left to retries, which come with what was missing and not with a clock.
func TestResource_waitsForItsNamespace(t *testing.T) {
	w := newWorld(t)
	name := w.berlin.Namespace + "-late"
	object := w.submit(w.resource("object", "{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: "+name+"}}"))
	hub.AwaitReason(w.World, object, v1alpha1.NamespaceNotFoundReason)
	w.submit(w.resource("namespace", "{apiVersion: v1, kind: Namespace, metadata: {name: "+name+"}}"))
	hub.AwaitReady(w.World, object)
	assert.True(t, w.berlin.ExistsIn(name, &corev1.ConfigMap{}, "web"))
}

// W44, W54, C57: nor are copies of Secrets made before it is known where they go.
func TestResource_waitsForItsKind(t *testing.T) {
	w := newWorld(t)
	w.secret("mysql", "one")
	gadget := "{apiVersion: example.com/v1, kind: Gadget, metadata: {name: web, namespace: " + w.berlin.Namespace + "}}"
	kar := w.submit(w.resource("web", gadget, "mysql"))
	hub.AwaitReason(w.World, kar, v1alpha1.KindNotServedReason)
	assert.False(t, w.berlin.Exists(&corev1.Secret{}, "web-mysql"))

	w.berlin.define("Gadget", "Namespaced")
	hub.AwaitReady(w.World, kar)
	assert.True(t, w.berlin.Exists(parse(t, gadget), "web"))
	w.berlin.awaitPassword("web-mysql", "one")
}

// C57: a kind that vanishes is a condition.
func TestResource_kindVanishes(t *testing.T) {
	w := newWorld(t)
	w.berlin.define("Gizmo", "Namespaced")
	gizmo := "{apiVersion: example.com/v1, kind: Gizmo, metadata: {name: web, namespace: " + w.berlin.Namespace + "}}"
	kar := hub.AwaitReady(w.World, w.submit(w.resource("web", gizmo)))
	definition := parse(t, "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: gizmos.example.com}}")
	if err := w.berlin.Client.Delete(t.Context(), definition); err != nil {
		t.Fatal(err)
	}
	hub.AwaitReason(w.World, kar, v1alpha1.KindNotServedReason)
	assert.Equal(t, v1alpha1.StateFailed, kar.Status.State)
}
