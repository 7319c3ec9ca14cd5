package application_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

// requests are those of one user that the API server accepted, but for watches, events and leases.
func (w *world) requests(since env.AuditMark, user string) []env.Request {
	w.T.Helper()
	got, err := w.Cluster.Requests(w.T.Context(), since, env.Calls, env.Accepted, env.ByUser(user), func(r env.Request) bool { return r.Resource != "events" })
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
// objects of listed kinds that have no owner cost nothing; and a process that restarts
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
	got := w.requests(mark, w.agent())
	require.Len(t, got, 1, "%+v", got)
	assert.Equal(t, "status", got[0].Subresource)

	stop()
	mark = w.mark()
	w.startAgent()
	hub.Reconcile(w.World, app)
	w.settle(app)
	writes := slices.DeleteFunc(w.requests(mark, w.agent()), func(r env.Request) bool { return !env.Writes(r) })
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

// No API server looks for unknown fields in what it is sent: there are none.
func TestIdle_hasNoFieldsValidated(t *testing.T) {
	w := newAgentWorld(t, right("", "configmaps"))
	w.Create(configMap(member("settings")))
	mark := w.mark()
	app := shop(named("ConfigMap", "settings"))
	w.Create(app)
	hub.AwaitReady(w.World, app)
	patched := map[string]bool{}
	for _, r := range w.requests(mark, w.agent()) {
		if r.Verb == "patch" {
			patched[r.Resource+"/"+r.Subresource] = true
			assert.Contains(t, r.URI, "fieldValidation=Ignore")
		}
	}
	assert.Equal(t, map[string]bool{"applications/": true, "applications/status": true, "configmaps/": true}, patched)
}

// What comes at once is written together: ten components are a handful of writes.
func TestIdle_gathersWhatComesAtOnce(t *testing.T) {
	w := newAgentWorld(t, right("", "configmaps"))
	app := shop(named("ConfigMap", ""))
	w.Create(app)
	w.awaitComponents(app, "0/1")
	mark, start := w.mark(), time.Now()
	for i := range 10 {
		w.Create(configMap(member(name("settings", i))))
	}
	w.awaitComponents(app, "10/10")
	hub.AwaitReady(w.World, app)
	most := 1 + int(time.Since(start)/(100*time.Millisecond))
	status, others := w.statusWrites(mark)
	assert.Equal(t, 10, others, "one for each ownerReference")
	assert.LessOrEqual(t, status, most, "one in 100 ms")
}

// A97: the larger a status is, the less often it is written: of an object that comes and goes
// all the time, one of 200 KB is written every two seconds.
func TestIdle_largeStatusIsWrittenSeldom(t *testing.T) {
	w := newAgentWorld(t, right("", "configmaps"))
	const objects = 320 // of about 640 bytes each in the status
	for i := range objects {
		w.Create(configMap(member(name(strings.Repeat("n", 245), i))))
	}
	app := shop(named("ConfigMap", ""))
	w.Create(app)
	w.awaitComponents(app, fmt.Sprintf("%d/%d", objects, objects))
	hub.AwaitReady(w.World, app)

	mark, start := w.mark(), time.Now()
	for i := range 100 {
		flapping := configMap(member("flapping"))
		w.Create(flapping)
		if i < 99 {
			require.NoError(t, w.Client.Delete(t.Context(), flapping))
		}
	}
	w.awaitComponents(app, fmt.Sprintf("%d/%d", objects+1, objects+1))
	most := 2 + int(time.Since(start)/(2*time.Second))
	status, _ := w.statusWrites(mark)
	assert.LessOrEqual(t, status, most, "in %s", time.Since(start))
}

// statusWrites counts those of the agent, and its other writes.
func (w *world) statusWrites(since env.AuditMark) (status, others int) {
	w.T.Helper()
	for _, r := range w.requests(since, w.agent()) {
		switch {
		case r.Subresource == "status":
			status++
		case env.Writes(r):
			others++
		}
	}
	return status, others
}
