package application_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/health"
	"waybill.dev/waybill/test/hub"
)

// A71, A73, A76, C6: the status follows what becomes of the components.
func TestHealth_isFollowed(t *testing.T) {
	w := newWorld(t)
	app := shop(deploymentNamed("web"), named("ConfigMap", "settings"))
	w.Create(app)
	w.awaitComponents(app, "0/2")
	w.Create(configMap(member("settings")))
	w.awaitComponents(app, "1/2")
	web := deployment(member("web"), 1)
	w.Create(web)
	w.awaitComponents(app, "2/2")
	hub.AwaitReady(w.World, app)
	assert.Equal(t, []string{"ConfigMap/settings", "Deployment.apps/web"}, app.Status.Installed)

	hub.Change(w.World, web, func(d *appsv1.Deployment) { d.Spec.Template.Spec.NodeSelector = map[string]string{"no": "such"} })
	hub.Await(w.World, app, "the rollout is not seen", func(app *v1alpha1.Application) bool {
		return component(app, "Deployment", "web").Health == string(health.InProgress)
	})
	message := hub.AwaitReason(w.World, app, v1alpha1.NotHealthyReason)
	assert.Contains(t, message, "1 of 2 components is not healthy: Deployment.apps/web: ")
	hub.Change(w.World, web, func(d *appsv1.Deployment) { d.Spec.Template.Spec.NodeSelector = nil })
	hub.AwaitReady(w.World, app)

	w.delete(web)
	w.awaitComponents(app, "1/2")
	assert.Equal(t, []string{"ConfigMap/settings"}, app.Status.Installed)
}

// C39: expressions decide for their kind, on metadata, spec and status.
func TestHealth_byExpression(t *testing.T) {
	w := newWorld(t)
	app := shop(deploymentNamed("web"), named("ConfigMap", "settings"))
	app.Spec.HealthExpressions = []v1alpha1.HealthExpression{
		{Group: "apps", Kind: "Deployment", Current: "spec.paused == true", Failed: "metadata.labels['broken'] == 'yes'"},
		{Kind: "ConfigMap", Current: "'approved' in metadata.labels"},
	}
	w.Create(app)
	web, settings := deployment(member("web"), 1), configMap(member("settings"))
	w.Create(web)
	w.Create(settings)
	hub.Await(w.World, app, "not in progress", func(app *v1alpha1.Application) bool {
		return component(app, "Deployment", "web").Health == string(health.InProgress) &&
			component(app, "ConfigMap", "settings").Health == string(health.InProgress)
	})
	hub.Change(w.World, web, func(d *appsv1.Deployment) { d.Spec.Paused = true })
	hub.Change(w.World, settings, func(c *corev1.ConfigMap) { c.Labels["approved"] = "" })
	w.awaitComponents(app, "2/2")
	hub.Change(w.World, web, func(d *appsv1.Deployment) { d.Labels["broken"] = "yes" })
	hub.Await(w.World, app, "not failed", func(app *v1alpha1.Application) bool {
		return component(app, "Deployment", "web").Health == string(health.Failed)
	})
	hub.Change(w.World, app, func(app *v1alpha1.Application) { app.Spec.HealthExpressions = nil })
	hub.Await(w.World, app, "without expressions, kstatus decides", func(app *v1alpha1.Application) bool {
		return component(app, "Deployment", "web").Health != string(health.Failed) &&
			component(app, "ConfigMap", "settings").Health == string(health.Current)
	})
}

// Rules that an operator adds are heeded at once, for objects that do not change.
func TestHealth_byAddedRules(t *testing.T) {
	w := newWorld(t)
	app := shop(named("PersistentVolumeClaim", "data"))
	w.Create(app)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: member("data"), Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: ptr.To("none"),
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}
	w.Create(claim)
	hub.Await(w.World, app, "not in progress", func(app *v1alpha1.Application) bool {
		return component(app, "PersistentVolumeClaim", "data").Health == string(health.InProgress)
	})
	book, err := health.NewBook(map[string]string{
		"a.yaml": "- {group: '', kinds: [PersistentVolumeClaim], current: \"status.phase == 'Bound' || metadata.namespace == '" + w.Namespace + "'\"}",
	})
	require.NoError(t, err)
	health.Use(book)
	t.Cleanup(func() { health.Use(nil) })
	w.awaitComponents(app, "1/1")
}

// A component that is on its way out is installed, and not healthy.
func TestHealth_terminating(t *testing.T) {
	w := newWorld(t)
	settings := configMap(member("settings"))
	settings.Finalizers = []string{"example.com/hold"}
	w.Create(settings)
	app := shop(named("ConfigMap", "settings"))
	w.Create(app)
	hub.AwaitReady(w.World, app)
	require.NoError(t, w.Client.Delete(t.Context(), settings))
	hub.Await(w.World, app, "not terminating", func(app *v1alpha1.Application) bool {
		c := component(app, "ConfigMap", "settings")
		return c.Installed && c.Health == string(health.Terminating)
	})
	hub.Change(w.World, settings, func(o *corev1.ConfigMap) { o.Finalizers = nil })
	w.awaitComponents(app, "0/1")
}

// C2: many objects at once, of a kind that is read in pages, are one status.
func TestHealth_manyAtOnce(t *testing.T) {
	w := newWorld(t)
	app := shop(v1alpha1.ApplicationComponent{Group: "", Kind: "PersistentVolumeClaim"})
	for i := range 120 {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: member(name("claim", i))}
		claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		claim.Spec.StorageClassName = new(string)
		claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: quantity("1Gi")}
		w.Create(claim)
	}
	w.Create(app)
	w.awaitComponents(app, "0/120")
	assert.Equal(t, metav1.ConditionFalse, statusOf(app, v1alpha1.ComponentsReadyCondition))
	assert.Len(t, app.Status.Installed, 120)
}
