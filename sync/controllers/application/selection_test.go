package application_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/health"
	"waybill.dev/waybill/test/hub"
)

// A49, A50, A53, A56, A67, A71-A73: components are what the spec lists, the selector matches
// and the annotation gives to the Application.
func TestSelection_followsTheDocument(t *testing.T) {
	w := newWorld(t)
	w.Create(configMap(member("there")))
	w.Create(configMap(metav1.ObjectMeta{Name: "orphan", Labels: map[string]string{"app": "other"}, Annotations: annotated()}))
	w.Create(configMap(metav1.ObjectMeta{Name: "elsewhere", Labels: labels(), Annotations: map[string]string{v1alpha1.ApplicationAnnotation: "other"}}))
	w.Create(configMap(metav1.ObjectMeta{Name: "nobody", Labels: labels(), Annotations: map[string]string{v1alpha1.ApplicationAnnotation: ""}}))
	w.Create(configMap(member("unlisted")))
	app := shop(named("ConfigMap", "there"), named("ConfigMap", "missing"), named("ConfigMap", "orphan"),
		named("ConfigMap", "elsewhere"), named("ConfigMap", "nobody"))
	w.Create(app)
	w.awaitComponents(app, "1/5")

	assert.Equal(t, []string{"ConfigMap/there"}, app.Status.Installed)
	for name, message := range map[string]string{
		"missing":   "does not exist",
		"orphan":    "labels do not match",
		"elsewhere": "belongs to Application other",
		"nobody":    "belongs to no Application",
	} {
		c := component(app, "ConfigMap", name)
		assert.False(t, c.Installed, name)
		assert.Equal(t, string(health.NotFound), c.Health, name)
		assert.Contains(t, c.Message, message, name)
	}
	assert.Equal(t, v1alpha1.NotHealthyReason, reasonOf(app, v1alpha1.ComponentsReadyCondition))
	assert.Equal(t, metav1.ConditionUnknown, app.Status.Ready, "A6, A85: there is no health check")
}

// C2, C59, A10: a component without a name is every selected object of its kind, with
// matchExpressions too.
func TestSelection_wholeKindByExpressions(t *testing.T) {
	w := newWorld(t)
	app := shop(v1alpha1.ApplicationComponent{Kind: "ConfigMap"}, named("ConfigMap", "by-name"), named("Secret", ""))
	app.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"shop", "shop-next"}},
		{Key: "draft", Operator: metav1.LabelSelectorOpDoesNotExist},
	}}
	w.Create(app)
	w.awaitComponents(app, "0/3")
	assert.Empty(t, app.Status.Installed)
	assert.False(t, component(app, "Secret", "").Installed, "none of the kind")

	w.Create(configMap(member("one")))
	w.Create(configMap(metav1.ObjectMeta{Name: "two", Labels: map[string]string{"app": "shop-next"}, Annotations: annotated()}))
	w.Create(configMap(member("by-name")))
	draft := member("draft")
	draft.Labels["draft"] = "yes"
	w.Create(configMap(draft))
	w.Create(secret(member("one")))
	w.awaitComponents(app, "4/4")
	assert.Equal(t, []string{"ConfigMap/by-name", "ConfigMap/one", "ConfigMap/two", "Secret/one"}, app.Status.Installed)
	hub.AwaitReady(w.World, app)
}

// A51, A79: the annotation, not the selectors, says whose an object is; and when it is pointed
// at another Application, the object moves.
func TestSelection_overlapIsDecidedByTheAnnotation(t *testing.T) {
	w := newWorld(t)
	one, two := shop(named("ConfigMap", "")), shop(named("ConfigMap", ""))
	two.Name = "two"
	w.Create(one)
	w.Create(two)
	settings := configMap(member("settings"))
	w.Create(settings)
	w.awaitComponents(one, "1/1")
	w.awaitComponents(two, "0/1")

	hub.Change(w.World, settings, func(c *corev1.ConfigMap) { c.Annotations[v1alpha1.ApplicationAnnotation] = "two" })
	w.awaitComponents(one, "0/1")
	w.awaitComponents(two, "1/1")
	w.awaitOwned(settings, two, true)
	w.awaitOwned(settings, one, false)
}

// A38: an object of another namespace is none of its business.
func TestSelection_ownNamespaceOnly(t *testing.T) {
	w, other := newWorld(t), newWorld(t)
	other.Create(configMap(member("settings")))
	app := shop(named("ConfigMap", "settings"))
	w.Create(app)
	w.awaitComponents(app, "0/1")
	assert.Contains(t, component(app, "ConfigMap", "settings").Message, "does not exist")
}

// Two that match and no annotation: nothing is done, and both say so.
func TestSelection_contestedObjectIsReportedOnBoth(t *testing.T) {
	w := newWorld(t)
	one, two := shop(named("ConfigMap", "")), shop(named("ConfigMap", "settings"))
	two.Name = "two"
	w.Create(one)
	w.Create(two)
	w.awaitComponents(one, "0/1")
	w.awaitComponents(two, "0/1")
	settings := configMap(metav1.ObjectMeta{Name: "settings", Labels: labels()})
	w.Create(settings)
	for _, app := range []*v1alpha1.Application{one, two} {
		hub.Await(w.World, app, "the conflict is not reported", func(app *v1alpha1.Application) bool {
			c := component(app, "ConfigMap", "settings")
			return !c.Installed && c.Message == "exists, but matches Applications shop, two: set the annotation kubernetes.io/application to choose one"
		})
	}
	assert.NotContains(t, settings.Annotations, v1alpha1.ApplicationAnnotation)

	w.delete(two)
	w.awaitComponents(one, "1/1")
	w.awaitOwned(settings, one, true)
}
