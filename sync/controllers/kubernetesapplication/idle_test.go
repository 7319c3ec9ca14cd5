package kubernetesapplication_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

func (w *world) mark() env.AuditMark {
	w.T.Helper()
	mark, err := w.Cluster.AuditMark(w.T.Context())
	require.NoError(w.T, err)
	return mark
}

// requests is what the controller asked of the hub because of a test.
func (w *world) requests(since env.AuditMark) []string {
	w.T.Helper()
	got, err := w.Cluster.Requests(w.T.Context(), since, env.Calls, env.Accepted, func(r env.Request) bool {
		return strings.Contains(r.User, hub.Identity) && r.Namespace == w.Namespace && r.Resource != "events"
	})
	require.NoError(w.T, err)
	var list []string
	for _, r := range got {
		list = append(list, strings.Join([]string{r.Verb, r.Resource, r.Subresource, r.Name}, " "))
	}
	return list
}

// An application costs one write for its cluster, one for each resource, and one status.
func TestIdle_whatSchedulingCosts(t *testing.T) {
	w := newWorld(t)
	w.addCluster("oslo", nil)
	w.awaitState(w.submit(application("warm-up", configMap(t, "warm-up"))), v1alpha1.StateScheduled)
	since := w.mark()
	w.awaitState(w.submit(application("web", configMap(t, "one"), configMap(t, "two"))), v1alpha1.StateScheduled)
	assert.ElementsMatch(t, []string{
		"patch kubernetesapplications  web", "create kubernetesapplicationresources  one", "create kubernetesapplicationresources  two",
		"patch kubernetesapplications status web",
	}, slices.DeleteFunc(w.requests(since), isGet))
}

// isGet reports whether a request reads one object. A resource that the cache does not show yet is
// tried to be made again, and then read.
func isGet(request string) bool { return strings.HasPrefix(request, "get ") }

// Nothing is asked for, and nothing written, when nothing changes; a resource that others
// touch without effect is looked at in the cache.
func TestIdle_costsNothing(t *testing.T) {
	w := newWorld(t)
	w.addCluster("oslo", nil)
	app := w.submit(application("web", configMap(t, "one"), configMap(t, "two")))
	w.say("one", "")
	w.say("two", "")
	hub.AwaitReady(w.World, app)
	since := w.mark()
	hub.Change(w.World, w.resource("one"), func(kar *v1alpha1.KubernetesApplicationResource) { kar.Labels["theirs"] = "kept" })
	hub.Reconcile(w.World, app)
	assert.ElementsMatch(t, []string{
		"update kubernetesapplicationresources  one", "update kubernetesapplicationresources  two", "patch kubernetesapplications status web",
	}, w.requests(since), "the request to reconcile is handed on, and noted")
}

// C48: what 200 templates cost grows with their number, and with nothing else.
func TestIdle_manyTemplates(t *testing.T) {
	w := newWorld(t)
	w.addCluster("oslo", nil)
	var templates []v1alpha1.ResourceTemplate
	for i := range v1alpha1.MaxResourceTemplates {
		templates = append(templates, configMap(t, fmt.Sprintf("r-%03d", i)))
	}
	since := w.mark()
	app := w.awaitState(w.submit(application("web", templates...)), v1alpha1.StateScheduled)
	require.NoError(t, each(w.resources(t.Context()), func(kar *v1alpha1.KubernetesApplicationResource) error { return w.sayOf(kar, "") }))
	hub.AwaitReady(w.World, app)
	assert.EqualValues(t, v1alpha1.MaxResourceTemplates, app.Status.SubmittedResources)
	got := w.requests(since)
	count := func(prefix string) int {
		return len(slices.DeleteFunc(slices.Clone(got), func(r string) bool { return !strings.HasPrefix(r, prefix) }))
	}
	assert.Equal(t, v1alpha1.MaxResourceTemplates, count("create kubernetesapplicationresources"))
	assert.Equal(t, 1, count("patch kubernetesapplications  web"))
	assert.Zero(t, count("update kubernetesapplicationresources"))
	assert.Less(t, count("get kubernetesapplicationresources"), v1alpha1.MaxResourceTemplates, "only what the cache does not show yet, however far it is behind")
	assert.LessOrEqual(t, count("get "), count("get kubernetesapplicationresources")+1, "what is chosen is confirmed")
	assert.Less(t, count("patch kubernetesapplications status"), v1alpha1.MaxResourceTemplates, "changes are gathered")

	since = w.mark()
	hub.Change(w.World, app, func(app *v1alpha1.KubernetesApplication) {
		app.Spec.ResourceTemplates[7] = template(t, "r-007", "{apiVersion: v1, kind: ConfigMap, metadata: {name: r-007}, data: {key: other}}")
	})
	w.awaitState(app, v1alpha1.StatePartiallySubmitted)
	assert.ElementsMatch(t, []string{"update kubernetesapplicationresources  r-007", "patch kubernetesapplications status web"}, w.requests(since))
}
