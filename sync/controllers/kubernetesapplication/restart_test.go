package kubernetesapplication_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// What a process that was killed between two writes has left is gone on with by the next;
// what it had finished is not written again.
func TestRestart_goesOnBetweenAnyTwoWrites(t *testing.T) {
	w := newOwnWorld(t)
	w.start()
	oslo := w.addCluster("oslo", nil)
	done := w.submit(application("done", configMap(t, "done")))
	w.say("done", "")
	hub.AwaitReady(w.World, done)
	w.process.Stop()

	chosen := application("chosen", configMap(t, "chosen-1"), configMap(t, "chosen-2"))
	chosen.Spec.ClusterName = "oslo" // and killed before the first resource, and the finalizer
	w.submit(chosen)
	half := application("half", configMap(t, "half-1"), configMap(t, "half-2"))
	half.Spec.ClusterName = "oslo" // and killed before the second resource
	half.Finalizers = []string{v1alpha1.Finalizer}
	w.submit(half)
	made := w.stranger("half-1", func(k *v1alpha1.KubernetesApplicationResource) {
		k.OwnerReferences = append(k.OwnerReferences, controller(v1alpha1.KubernetesApplicationKind, "half", half.UID))
		k.Annotations = map[string]string{v1alpha1.OwnerAnnotation: w.ownerMark(w.process.HubID, "half")}
		k.Spec.ClusterName, k.Spec.Template = "oslo", configMap(t, "half-1").Spec.Template
	})
	going := w.submit(application("going", configMap(t, "going"))) // and killed before it was scheduled
	since := w.mark()

	w.start()
	w.connect(oslo)
	for _, app := range []*v1alpha1.KubernetesApplication{chosen, half, going} {
		w.awaitState(app, v1alpha1.StateScheduled)
		for i := range app.Spec.ResourceTemplates {
			w.say(app.Spec.ResourceTemplates[i].Metadata.Name, "")
		}
		hub.AwaitReady(w.World, app)
		assert.Contains(t, app.Finalizers, v1alpha1.Finalizer)
	}
	assert.Equal(t, made.UID, w.resource("half-1").UID)
	for _, r := range w.requests(since) {
		require.NotContains(t, r, "done", "an application that is done is not written")
	}
}

// C11: a deletion that was begun goes on.
func TestRestart_goesOnDeleting(t *testing.T) {
	w := newOwnWorld(t)
	w.start()
	w.addCluster("oslo", nil)
	app := w.submit(application("web", configMap(t, "one")))
	w.awaitState(app, v1alpha1.StateScheduled)
	w.process.Stop()
	require.NoError(t, w.Client.Delete(t.Context(), app))
	kar := w.resource("one")
	assert.True(t, kar.DeletionTimestamp.IsZero())
	w.start()
	require.True(t, w.Eventually(func() bool { return w.Exists(kar, "one") && !kar.DeletionTimestamp.IsZero() }))
	assert.True(t, w.Exists(app, "web"))
	w.release(kar)
	w.AwaitGone(app, "web")
}
