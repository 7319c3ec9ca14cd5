package application_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// A2, A35, A36, A37, A88, C4: the generation is the API server's, begins with 1, and grows by 1 with
// each change of the spec and with nothing else; the status says which one it is about.
func TestGeneration_isObserved(t *testing.T) {
	w := newWorld(t)
	app := shop(named("ConfigMap", "settings"))
	w.Create(app)
	require.EqualValues(t, 1, app.Generation)
	w.awaitObserved(app)

	for generation := int64(2); generation <= 4; generation++ {
		hub.Change(w.World, app, func(app *v1alpha1.Application) { app.Spec.Description += "more" })
		require.Equal(t, generation, app.Generation)
		w.awaitObserved(app)
	}
	hub.Change(w.World, app, func(app *v1alpha1.Application) { app.Labels = map[string]string{"team": "a"} })
	w.Create(configMap(member("settings")))
	w.awaitComponents(app, "1/1")
	assert.EqualValues(t, 4, app.Generation, "neither metadata nor status count")

	raw := &unstructured.Unstructured{}
	raw.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.ApplicationKind))
	require.NoError(t, w.Client.Get(t.Context(), client.ObjectKeyFromObject(app), raw))
	observed, found, err := unstructured.NestedInt64(raw.Object, "status", "observedGeneration")
	require.NoError(t, err)
	assert.True(t, found)
	assert.EqualValues(t, 4, observed)
}

// awaitObserved waits until the status is about the present generation.
func (w *world) awaitObserved(app *v1alpha1.Application) {
	w.T.Helper()
	generation := app.Generation
	hub.Await(w.World, app, "the generation is not observed", func(app *v1alpha1.Application) bool {
		return app.Status.ObservedGeneration == generation
	})
}

// A4: ready is True, False or Unknown, and the API server takes nothing else.
func TestReady_isAConditionStatus(t *testing.T) {
	w := newWorld(t)
	app := shop()
	w.Create(app)
	hub.AwaitReady(w.World, app)
	assert.Equal(t, metav1.ConditionUnknown, app.Status.Ready)
	for ready, accepted := range map[string]bool{"True": true, "False": true, "Unknown": true, "true": false, "Maybe": false} {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"status": {"ready": "`+ready+`"}}`))
		err := w.Client.Status().Patch(t.Context(), app.DeepCopy(), patch, client.DryRunAll)
		if accepted {
			assert.NoError(t, err, ready)
		} else {
			assert.True(t, apierrors.IsInvalid(err), "%s: %v", ready, err)
		}
	}
}

// A23: labels and annotations of an Application are for the users who set them.
func TestMetadata_isKept(t *testing.T) {
	w := newWorld(t)
	app := shop(named("ConfigMap", "settings"))
	app.Labels = map[string]string{"team": "a", "app": "of-apps"}
	app.Annotations = map[string]string{"example.com/on-call": "b"}
	w.Create(app)
	w.Create(configMap(member("settings")))
	w.awaitComponents(app, "1/1")
	assert.Equal(t, map[string]string{"team": "a", "app": "of-apps"}, app.Labels)
	assert.Equal(t, map[string]string{"example.com/on-call": "b"}, app.Annotations)
}

// A55, A72: an annotation may name what is not there: it stays, no other gets the object, and an
// Application of the name that comes has a status of all of its components.
func TestSelection_annotationOfAnApplicationToCome(t *testing.T) {
	w := newWorld(t)
	early := configMap(member("early"))
	w.Create(early)
	other := shop(named("ConfigMap", "early"), named("ConfigMap", "own"))
	other.Name = "other"
	w.Create(other)
	own := configMap(metav1.ObjectMeta{Name: "own", Labels: labels(), Annotations: map[string]string{v1alpha1.ApplicationAnnotation: "other"}})
	w.Create(own)
	w.awaitComponents(other, "1/2")
	assert.Contains(t, component(other, "ConfigMap", "early").Message, "belongs to Application shop")
	require.True(t, w.Exists(early, "early"))
	assert.Equal(t, annotated(), early.Annotations)
	assert.Empty(t, early.OwnerReferences)

	app := shop(named("ConfigMap", "early"), named("ConfigMap", "late"))
	w.Create(app)
	w.awaitComponents(app, "1/2")
	w.awaitOwned(early, app, true)
	assert.Len(t, app.Status.Components, 2)
	assert.False(t, component(app, "ConfigMap", "late").Installed)
}
