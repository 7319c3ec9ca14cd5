package application_test

import (
	"errors"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

// unplugged keeps requests from the API server while it is true.
type unplugged struct {
	atomic.Bool
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (u *unplugged) RoundTrip(request *http.Request) (*http.Response, error) {
	if u.Load() {
		return nil, errors.New("connection refused")
	}
	return u.next.RoundTrip(request)
}

// An API server that is gone for a while is survived, without a word in any status, and
// without a storm when it is back; what happened before and after is noticed.
func TestRestart_ofTheAPIServer(t *testing.T) {
	w, stop := newStoppableAgentWorld(t, right("", "configmaps"), right("apps", "deployments"))
	stop()
	network := &unplugged{}
	w.startAgent(func(next http.RoundTripper) http.RoundTripper {
		network.next = next
		return network
	})
	settings, web := configMap(member("settings")), deployment(member("web"), 0)
	w.Create(settings)
	w.Create(web)
	app := shop(named("ConfigMap", ""), deploymentNamed("web"))
	w.Create(app)
	hub.AwaitReady(w.World, app)
	w.settle(app)
	version := app.ResourceVersion

	mark := w.mark()
	network.Store(true)
	require.NoError(t, w.Cluster.KillAPIServer())
	require.NoError(t, w.Cluster.StartAPIServer(t.Context()))
	network.Store(false) // one that is not ready yet knows no rights, and forbids everything
	w.settle(app)
	assert.Equal(t, version, app.ResourceVersion, "nothing was written: %+v", app.Status)

	late := configMap(member("late"))
	w.Create(late)
	w.awaitOwned(late, app, true)
	w.awaitComponents(app, "3/3")
	hub.Change(w.World, settings, func(o *corev1.ConfigMap) { o.Labels["app"] = "other" })
	w.awaitOwned(settings, app, false)
	w.awaitComponents(app, "2/2")
	assert.Less(t, len(w.requests(mark, w.agent())), 30)
}

// Whatever the process was doing when it was killed, the next one ends it: here a reference
// that was given of a kind that the spec has dropped meanwhile.
func TestRestart_ofTheProcess(t *testing.T) {
	w, stop := newStoppableAgentWorld(t, right("", "configmaps"), right("", "secrets"))
	password, settings := secret(member("password")), configMap(member("settings"))
	w.Create(password)
	app := shop(named("Secret", "password"), named("ConfigMap", "settings"))
	w.Create(app)
	w.awaitOwned(password, app, true)
	stop()

	w.Create(settings)
	hub.Change(w.World, app, func(app *v1alpha1.Application) { app.Spec.Components = app.Spec.Components[1:] })
	w.startAgent()
	w.awaitOwned(password, app, false)
	w.awaitOwned(settings, app, true)
	hub.AwaitReady(w.World, app)
	assert.Equal(t, []string{"ConfigMap/settings"}, app.Status.Installed)
	assert.Equal(t, metav1.ConditionTrue, statusOf(app, "ComponentsReady"))
}

// A58, A74: no process says of a dependency that it is missing before it knows all Applications:
// one that starts anew writes nothing where all is as it was.
func TestRestart_knowsAllApplicationsFirst(t *testing.T) {
	const chain = 60
	w, stop := newStoppableAgentWorld(t)
	apps := []*v1alpha1.Application{depending(name("app", 0))}
	for i := 1; i < chain; i++ {
		apps = append(apps, depending(name("app", i), name("app", i-1)))
	}
	for _, app := range apps {
		w.Create(app)
	}
	for _, app := range apps {
		hub.AwaitReady(w.World, app)
	}
	stop()

	mark := w.mark()
	w.startAgent()
	first, last := apps[0], apps[chain-1]
	hub.Reconcile(w.World, first)
	hub.Reconcile(w.World, last)
	w.settle(last)
	writes := slices.DeleteFunc(w.requests(mark, w.agent()), func(r env.Request) bool { return !env.Writes(r) })
	assert.Len(t, writes, 2, "only what was asked for: %+v", writes)
}
