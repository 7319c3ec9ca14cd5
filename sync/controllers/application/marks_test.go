package application_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// P1, C3, C32, C52: what admission missed, because it was down or the object older than its
// Application, the controller fills in.
func TestMarks_areFilledIn(t *testing.T) {
	w := newWorld(t)
	before, after := configMap(metav1.ObjectMeta{Name: "before", Labels: labels()}), configMap(metav1.ObjectMeta{Name: "after", Labels: labels()})
	w.Create(before)
	app := shop(named("ConfigMap", ""))
	w.Create(app)
	w.Create(after)
	for _, o := range []*corev1.ConfigMap{before, after} {
		w.awaitOwned(o, app, true)
		assert.Equal(t, map[string]string{v1alpha1.ApplicationAnnotation: "shop", v1alpha1.InjectedAnnotation: "shop"}, o.Annotations)
		assert.Equal(t, map[string]string{"app": "shop", v1alpha1.PartOfLabel: "shop"}, o.Labels)
	}
	w.awaitComponents(app, "2/2")
}

// C52: what was filled in is determined again when it does not match any more; an explicit
// annotation is left as it is.
func TestMarks_areTakenBack(t *testing.T) {
	w := newWorld(t)
	filled := configMap(metav1.ObjectMeta{Name: "filled", Labels: labels()})
	explicit := configMap(member("explicit"))
	w.Create(filled)
	w.Create(explicit)
	app := shop(named("ConfigMap", ""))
	w.Create(app)
	w.awaitOwned(filled, app, true)
	w.awaitOwned(explicit, app, true)

	for _, o := range []*corev1.ConfigMap{filled, explicit} {
		hub.Change(w.World, o, func(o *corev1.ConfigMap) { o.Labels["app"] = "other" })
		w.awaitOwned(o, app, false)
	}
	assert.Empty(t, filled.Annotations)
	assert.Equal(t, map[string]string{"app": "other"}, filled.Labels)
	assert.Equal(t, annotated(), explicit.Annotations)
}

// A25, C3: objects that say they belong to none, and objects of other labels, stay untouched.
func TestMarks_leaveOthersAlone(t *testing.T) {
	w := newWorld(t)
	none := configMap(metav1.ObjectMeta{Name: "none", Labels: labels(), Annotations: map[string]string{v1alpha1.ApplicationAnnotation: ""}})
	other := configMap(metav1.ObjectMeta{Name: "other", Labels: map[string]string{"app": "other"}})
	w.Create(none)
	w.Create(other)
	noneVersion, otherVersion := none.ResourceVersion, other.ResourceVersion
	w.Create(configMap(member("one")))
	app := shop(named("ConfigMap", ""))
	w.Create(app)
	hub.AwaitReady(w.World, app)
	assert.Equal(t, []string{"ConfigMap/one"}, app.Status.Installed)
	w.Exists(none, "none")
	w.Exists(other, "other")
	assert.Equal(t, noneVersion, none.ResourceVersion)
	assert.Equal(t, otherVersion, other.ResourceVersion)
}

// C52, A67, A79: what was filled in for an Application that is gone moves to one that comes to
// match later: a selector is changed by creating a new Application.
func TestMarks_moveToAnApplicationMadeLater(t *testing.T) {
	w := newWorld(t)
	settings := configMap(metav1.ObjectMeta{Name: "settings", Labels: labels()})
	w.Create(settings)
	app := shop(named("ConfigMap", ""))
	app.Spec.Ownership = v1alpha1.OwnershipObserve
	w.Create(app)
	w.awaitComponents(app, "1/1")
	w.delete(app)
	require.True(t, w.Exists(settings, "settings"))
	require.Equal(t, "shop", settings.Annotations[v1alpha1.ApplicationAnnotation])

	store := shop(named("ConfigMap", ""))
	store.Name = "store"
	w.Create(store)
	w.awaitOwned(settings, store, true)
	assert.Equal(t, map[string]string{v1alpha1.ApplicationAnnotation: "store", v1alpha1.InjectedAnnotation: "store"}, settings.Annotations)
	hub.AwaitReady(w.World, store)
}
