package application_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// outage makes an API server refuse every request while it lasts. When it ends, the first list of
// each kind fails, and the second breaks off.
type outage struct {
	next http.RoundTripper

	mu    sync.Mutex
	lasts bool
	ended bool
	asked map[string]int
}

// RoundTrip implements http.RoundTripper.
func (o *outage) RoundTrip(r *http.Request) (*http.Response, error) {
	o.mu.Lock()
	if o.lasts {
		o.mu.Unlock()
		return nil, errors.New("connection refused")
	}
	asked := 2
	if o.ended && r.Method == http.MethodGet {
		asked = o.asked[r.URL.Path]
		o.asked[r.URL.Path]++
	}
	o.mu.Unlock()
	if asked == 0 {
		return &http.Response{
			StatusCode: http.StatusInternalServerError, Status: "500 Internal Server Error", Request: r,
			Body: io.NopCloser(strings.NewReader("etcdserver: leader changed")),
		}, nil
	}
	answer, err := o.next.RoundTrip(r)
	if err == nil && asked == 1 {
		answer.Body = &torn{ReadCloser: answer.Body, left: 700}
	}
	return answer, err
}

// torn is an answer that breaks off.
type torn struct {
	io.ReadCloser
	left int
}

// Read implements io.Reader.
func (t *torn) Read(into []byte) (int, error) {
	if t.left == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := t.ReadCloser.Read(into[:min(len(into), t.left)])
	t.left -= n
	return n, err
}

func (o *outage) set(lasts bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lasts, o.ended, o.asked = lasts, !lasts, map[string]int{}
}

// follow returns a function that returns every state that an Application had since.
func (w *world) follow(app *v1alpha1.Application) (states func() []*v1alpha1.Application) {
	w.T.Helper()
	follower, err := client.NewWithWatch(w.Cluster.RESTConfig(), client.Options{Scheme: w.Client.Scheme()})
	require.NoError(w.T, err)
	list := &v1alpha1.ApplicationList{}
	require.NoError(w.T, w.Client.List(w.T.Context(), list, inNamespace(w)))
	changes, err := follower.Watch(w.T.Context(), &v1alpha1.ApplicationList{}, inNamespace(w), &client.ListOptions{
		Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion},
	})
	require.NoError(w.T, err)
	w.T.Cleanup(changes.Stop)
	return func() []*v1alpha1.Application {
		w.T.Helper()
		require.True(w.T, w.Exists(app, app.Name))
		var all []*v1alpha1.Application
		for change := range changes.ResultChan() {
			require.NotEqual(w.T, apiwatch.Error, change.Type)
			state := change.Object.(*v1alpha1.Application)
			if state.Name != app.Name {
				continue
			}
			if all = append(all, state); state.ResourceVersion == app.ResourceVersion {
				break
			}
		}
		return all
	}
}

// An API server that is gone for a while comes back in another state, and at first lists
// badly: what is still there is never said not to be, what has changed meanwhile is noticed, and
// an Application of which nothing has changed is not written.
func TestOutage_endsInAnotherState(t *testing.T) {
	w, stop := newStoppableAgentWorld(t, right("", "configmaps"), right("", "secrets"), right("apps", "deployments"))
	stop()
	broken := &outage{}
	w.startAgent(func(next http.RoundTripper) http.RoundTripper {
		broken.next = next
		return broken
	})
	gone, replaced, web := configMap(member("gone")), configMap(member("replaced")), deployment(member("web"), 0)
	for _, o := range []client.Object{gone, replaced, web, configMap(member("kept")), secret(member("password"))} {
		w.Create(o)
	}
	app := shop(named("ConfigMap", ""), deploymentNamed("web"))
	w.Create(app)
	idle := shop(named("Secret", "password"))
	idle.Name, idle.Spec.Ownership = "idle", v1alpha1.OwnershipObserve
	w.Create(idle)
	hub.AwaitReady(w.World, app)
	w.settle(idle)
	before, uid := idle.ResourceVersion, replaced.UID

	broken.set(true)
	require.NoError(t, w.Cluster.KillAPIServer())
	require.NoError(t, w.Cluster.StartAPIServer(t.Context()))
	w.delete(gone)
	w.delete(replaced)
	replaced = configMap(member("replaced"))
	w.Create(replaced)
	late := configMap(member("late"))
	w.Create(late)
	require.NotEqual(t, uid, replaced.UID)
	states, mark := w.follow(app), w.mark()
	broken.set(false)

	w.awaitOwned(replaced, app, true)
	w.awaitOwned(late, app, true)
	hub.Await(w.World, app, "the status is not that of now", func(app *v1alpha1.Application) bool {
		return assert.ObjectsAreEqual([]string{"ConfigMap/kept", "ConfigMap/late", "ConfigMap/replaced", "Deployment.apps/web"}, app.Status.Installed)
	})
	hub.AwaitReady(w.World, app)
	for _, state := range states() {
		assert.Subset(t, state.Status.Installed, []string{"ConfigMap/kept", "ConfigMap/replaced", "Deployment.apps/web"})
		assert.True(t, component(state, "ConfigMap", "kept").Owned)
	}
	w.settle(idle)
	assert.Equal(t, before, idle.ResourceVersion, "nothing was written: %+v", idle.Status)
	assert.Less(t, len(w.requests(mark, w.agent())), 50)
}
