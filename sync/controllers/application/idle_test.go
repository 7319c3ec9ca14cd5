package application_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

// requests are those of one user to the API server, but for watches, events and leases.
func (w *world) requests(since env.AuditMark, user string) []env.Request {
	w.T.Helper()
	got, err := w.Cluster.Requests(w.T.Context(), since, env.Calls, env.ByUser(user), func(r env.Request) bool { return r.Resource != "events" })
	require.NoError(w.T, err)
	return got
}

func (w *world) mark() env.AuditMark {
	w.T.Helper()
	mark, err := w.Cluster.AuditMark(w.T.Context())
	require.NoError(w.T, err)
	return mark
}

// A97: nothing is asked when nothing changes; a reconciliation that is asked for is one write;
// objects of listed kinds that belong to nobody cost nothing; and a process that starts anew
// writes nothing where all is as it was.
func TestIdle_costsNothing(t *testing.T) {
	w, stop := newStoppableAgentWorld(t, right("", "configmaps"), right("", "secrets"), right("apps", "deployments"))
	app := shop(named("ConfigMap", ""), named("Secret", "password"), deploymentNamed("web"))
	w.Create(app)
	w.Create(deployment(member("web"), 0))
	w.Create(secret(member("password")))
	for i := range 10 {
		w.Create(configMap(member(name("settings", i))))
	}
	w.awaitComponents(app, "12/12")
	hub.AwaitReady(w.World, app)
	w.settle(app)

	mark := w.mark()
	stranger := configMap(member("stranger"))
	stranger.Labels, stranger.Annotations = nil, nil
	w.Create(stranger)
	hub.Reconcile(w.World, app)
	got := w.requests(mark, agentUser)
	require.Len(t, got, 1, "%+v", got)
	assert.Equal(t, "status", got[0].Subresource)

	stop()
	mark = w.mark()
	w.startAgent()
	hub.Reconcile(w.World, app)
	w.settle(app)
	writes := slices.DeleteFunc(w.requests(mark, agentUser), func(r env.Request) bool { return !env.Writes(r) })
	require.Len(t, writes, 1, "%+v", writes)
}

// settle waits until the Application has not been written for a second.
func (w *world) settle(app *v1alpha1.Application) {
	w.T.Helper()
	version, since := "", time.Now()
	require.True(w.T, w.Eventually(func() bool {
		w.Exists(app, app.Name)
		if app.ResourceVersion != version {
			version, since = app.ResourceVersion, time.Now()
		}
		return time.Since(since) > time.Second
	}))
}

// What comes at once is written together: ten components are a handful of writes.
func TestIdle_gathersWhatComesAtOnce(t *testing.T) {
	w := newAgentWorld(t, right("", "configmaps"))
	app := shop(named("ConfigMap", ""))
	w.Create(app)
	w.awaitComponents(app, "0/1")
	mark := w.mark()
	for i := range 10 {
		w.Create(configMap(member(name("settings", i))))
	}
	w.awaitComponents(app, "10/10")
	hub.AwaitReady(w.World, app)
	var status, patches int
	for _, r := range w.requests(mark, agentUser) {
		switch {
		case r.Resource == "configmaps":
			patches++
		case r.Subresource == "status":
			status++
		}
	}
	assert.Equal(t, 10, patches, "one for each ownerReference")
	assert.LessOrEqual(t, status, 8)
}
