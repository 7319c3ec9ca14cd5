package application_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/health"
	"waybill.dev/waybill/test/hub"
)

func depending(name string, dependencies ...string) *v1alpha1.Application {
	app := shop()
	app.Name, app.Spec.Dependencies = name, dependencies
	return app
}

// A39, A46-A48, A58, A69, A74, A75, A77: who depends on an Application is enqueued when it comes and
// when it goes, and is no owner of it.
func TestDependencies_areFollowed(t *testing.T) {
	w, elsewhere := newWorld(t), newWorld(t)
	elsewhere.Create(depending("mysql"))
	wordpress := depending("wordpress", "mysql")
	w.Create(wordpress)
	message := hub.AwaitReason(w.World, wordpress, v1alpha1.DependencyNotInstalledReason)
	assert.Equal(t, "dependencies are not installed: mysql", message)
	assert.Empty(t, wordpress.Status.Installed)

	mysql := depending("mysql")
	w.Create(mysql)
	hub.AwaitReady(w.World, wordpress)
	assert.Equal(t, []string{"Application/mysql"}, wordpress.Status.Installed)
	assert.Equal(t, []v1alpha1.ComponentStatus{{
		Group: v1alpha1.Group, Kind: v1alpha1.ApplicationKind, Name: "mysql", Installed: true, Health: string(health.Current),
	}}, wordpress.Status.Dependencies)
	hub.AwaitReady(w.World, mysql)
	assert.Empty(t, mysql.OwnerReferences)

	w.delete(wordpress)
	assert.True(t, w.Exists(mysql, "mysql"), "it survives who depends on it")
	again := depending("wordpress", "mysql")
	w.Create(again)
	hub.AwaitReady(w.World, again)
	w.delete(mysql)
	hub.AwaitReason(w.World, again, v1alpha1.DependencyNotInstalledReason)
	assert.Empty(t, again.Status.Installed)
}

// Applications that depend on themselves through others say so, all of them, until the cycle
// is broken.
func TestDependencies_cycle(t *testing.T) {
	w := newWorld(t)
	apps := []*v1alpha1.Application{depending("a", "b"), depending("b", "c"), depending("c", "a"), depending("d", "a")}
	for _, app := range apps {
		w.Create(app)
	}
	for i, cycle := range []string{"a -> b -> c -> a", "b -> c -> a -> b", "c -> a -> b -> c"} {
		message := hub.AwaitReason(w.World, apps[i], v1alpha1.DependencyCycleReason)
		assert.Equal(t, "the Application depends on itself: "+cycle, message)
	}
	hub.AwaitReady(w.World, apps[3])

	hub.Change(w.World, apps[1], func(app *v1alpha1.Application) { app.Spec.Dependencies = nil })
	for _, app := range apps {
		hub.AwaitReady(w.World, app)
	}
}
