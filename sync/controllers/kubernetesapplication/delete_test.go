package kubernetesapplication_test

import (
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// W48, W49, C11: all resources are gone before the application is, however it is deleted.
func TestDelete_waitsForItsResources(t *testing.T) {
	for _, policy := range []metav1.DeletionPropagation{
		metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan,
	} {
		t.Run(string(policy), func(t *testing.T) {
			w := newWorld(t)
			w.addCluster("oslo", nil)
			app := w.submit(application("web", configMap(t, "one"), configMap(t, "two")))
			w.say("one", "")
			w.say("two", "")
			hub.AwaitReady(w.World, app)
			require.NoError(t, w.Client.Delete(t.Context(), app, client.PropagationPolicy(policy)))
			w.awaitState(app, v1alpha1.StateDeleting)
			assert.EqualValues(t, 2, app.Status.SubmittedResources)
			assert.Equal(t, v1alpha1.DeletingReason, conditions.GetReason(app, v1alpha1.SubmittedCondition), "nothing is submitted any more")

			for _, name := range []string{"one", "two"} {
				require.True(t, w.Exists(app, "web"), "still waited for: "+name)
				kar := w.resource(name)
				require.True(t, w.Eventually(func() bool { return w.Exists(kar, name) && !kar.DeletionTimestamp.IsZero() }))
				w.release(kar)
			}
			w.AwaitGone(app, "web")
		})
	}
}

// C11: what a deletion waits for is said.
func TestDelete_saysWhatItWaitsFor(t *testing.T) {
	w := newWorld(t)
	w.addCluster("oslo", nil)
	app := w.submit(application("web", configMap(t, "one"), configMap(t, "two")))
	w.awaitState(app, v1alpha1.StateScheduled)
	require.NoError(t, w.Client.Delete(t.Context(), app))
	message := hub.AwaitReason(w.World, app, v1alpha1.DeletingReason)
	assert.Equal(t, "waiting for what is left: resource one; resource two", message)

	kar := w.resource("one")
	before := kar.DeepCopy()
	conditions.MarkFalse(kar, v1alpha1.ReadyCondition, v1alpha1.ClusterUnreachableReason, "cluster oslo does not answer")
	require.NoError(t, w.Client.Status().Patch(t.Context(), kar, client.MergeFrom(before)))
	w.awaitMessage(app, "resource one: cluster oslo does not answer")

	w.release(w.resource("two"))
	hub.Await(w.World, app, "one is left", func(app *v1alpha1.KubernetesApplication) bool { return app.Status.SubmittedResources == 1 })
	assert.Equal(t, "1 resource is left", conditions.GetMessage(app, v1alpha1.SubmittedCondition))
	assert.True(t, conditions.IsUnknown(app, v1alpha1.SubmittedCondition))
}

// W48, C57: an operator that came with the application is there until it has released what is
// deleted with it.
func TestDelete_ofAnOperatorAndItsObjects(t *testing.T) {
	w := newWorld(t)
	w.addCluster("oslo", nil)
	crd, err := v1alpha1.NewObjectTemplate(toUnstructured(t, definition(w, "Valve", "valves")))
	require.NoError(t, err)
	app := w.submit(application("web",
		template(t, "operator", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: operator}}"),
		v1alpha1.ResourceTemplate{Metadata: v1alpha1.ResourceTemplateMetadata{Name: "crd"}, Spec: v1alpha1.ResourceTemplateSpec{Template: crd}},
		template(t, "valve", "{apiVersion: "+w.Namespace+".example.com/v1, kind: Valve, metadata: {name: one}}"),
	))
	w.awaitState(app, v1alpha1.StateScheduled)
	require.NoError(t, w.Client.Delete(t.Context(), app))
	w.awaitState(app, v1alpha1.StateDeleting)
	valve := w.resource("valve")
	require.False(t, valve.DeletionTimestamp.IsZero())
	for _, name := range []string{"operator", "crd"} {
		require.True(t, w.resource(name).DeletionTimestamp.IsZero(), name+" goes when the objects of its kind are gone")
	}
	w.release(valve)
	for _, name := range []string{"operator", "crd"} {
		kar := &v1alpha1.KubernetesApplicationResource{}
		require.True(t, w.Eventually(func() bool { return w.Exists(kar, name) && !kar.DeletionTimestamp.IsZero() }))
		w.release(kar)
	}
	w.AwaitGone(app, "web")
}

// W37, C11: an application that never had a cluster is held by nothing.
func TestDelete_ofWhatIsNotScheduled(t *testing.T) {
	w := newWorld(t)
	app := w.submit(application("web", configMap(t, "one")))
	hub.AwaitReason(w.World, app, v1alpha1.NoClusterFitsReason)
	require.NoError(t, w.Client.Delete(t.Context(), app))
	w.AwaitGone(app, "web")
}

// W48: a resource that was made a moment ago, or is being made, is not left behind once the
// application is held by its finalizer.
func TestDelete_rightAfterCreation(t *testing.T) {
	w := newWorld(t)
	w.addCluster("oslo", nil)
	require.True(t, w.Eventually(func() bool { return w.reachable("oslo") }))
	for range 5 {
		app := w.submit(application("web", configMap(t, "one"), configMap(t, "two")))
		hub.Await(w.World, app, "nothing holds it", func(app *v1alpha1.KubernetesApplication) bool { return len(app.Finalizers) > 0 })
		require.NoError(t, w.Client.Delete(t.Context(), app))
		kar := &v1alpha1.KubernetesApplicationResource{}
		require.True(t, w.Eventually(func() bool {
			for _, name := range []string{"one", "two"} {
				if w.Exists(kar, name) && !kar.DeletionTimestamp.IsZero() {
					w.release(kar)
				}
			}
			return !w.Exists(app, "web")
		}))
		assert.False(t, w.Exists(kar, "one"))
		assert.False(t, w.Exists(kar, "two"))
	}
}
