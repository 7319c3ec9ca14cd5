package application_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

// dam holds back what watches of a kind deliver while it is closed.
type dam struct {
	next     http.RoundTripper
	resource string

	mu   sync.Mutex
	open chan struct{} // closed while the dam is open
}

func (d *dam) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open = make(chan struct{})
}

// RoundTrip implements http.RoundTripper.
func (d *dam) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := d.next.RoundTrip(r)
	if err == nil && r.URL.Query().Has("watch") && strings.HasSuffix(r.URL.Path, "/"+d.resource) {
		answer.Body = &dammed{answer.Body, d, r.Context()}
	}
	return answer, err
}

type dammed struct {
	io.ReadCloser
	dam     *dam
	request context.Context
}

// Read implements io.Reader.
func (d *dammed) Read(into []byte) (int, error) {
	n, err := d.ReadCloser.Read(into)
	d.dam.mu.Lock()
	open := d.dam.open
	d.dam.mu.Unlock()
	select {
	case <-open:
	case <-d.request.Done():
	}
	return n, err
}

// A78, A79, A97: hundreds of objects that move from one Application to the next all at once are one
// write each, and few for each Application.
func TestBurst_endsRightAfterFewWrites(t *testing.T) {
	const apps, objects = 25, 16
	w, stop := newStoppableAgentWorld(t, right("", "configmaps"))
	stop()
	held := &dam{resource: "configmaps"}
	held.close()
	close(held.open)
	w.startAgent(func(next http.RoundTripper) http.RoundTripper {
		held.next = next
		return held
	})
	all := func(do func(app, object int) error) {
		var group errgroup.Group
		group.SetLimit(16)
		for o := range objects { // the objects of one Application are far from each other
			for a := range apps {
				group.Go(func() error { return do(a, o) })
			}
		}
		require.NoError(t, group.Wait())
	}
	object := func(app, object int) string { return name(name("settings", app), object) }
	all(func(a, o int) error {
		return w.Client.Create(t.Context(), configMap(metav1.ObjectMeta{
			Namespace: w.Namespace, Name: object(a, o), Labels: map[string]string{"app": name("app", a)},
		}))
	})
	made := make([]*v1alpha1.Application, apps)
	for a := range apps {
		made[a] = shop(named("ConfigMap", ""))
		made[a].Name, made[a].Spec.Selector.MatchLabels = name("app", a), map[string]string{"app": name("app", a)}
		w.Create(made[a])
	}
	has := func(app, from int) {
		t.Helper()
		hub.Await(w.World, made[app], "it has not its objects", func(app *v1alpha1.Application) bool {
			if len(app.Status.Components) != objects {
				return false
			}
			for o, c := range app.Status.Components {
				if c.Name != object(from, o) || !c.Installed || !c.Owned {
					return false
				}
			}
			return true
		})
		hub.AwaitReady(w.World, made[app])
	}
	for a := range apps {
		has(a, a)
	}

	mark := w.mark()
	held.close()
	all(func(a, o int) error {
		patch := `{"metadata":{"labels":{"app":"` + name("app", (a+1)%apps) + `"}}}`
		return w.Client.Patch(t.Context(), configMap(metav1.ObjectMeta{Namespace: w.Namespace, Name: object(a, o)}),
			client.RawPatch(types.MergePatchType, []byte(patch)))
	})
	start := time.Now()
	close(held.open)
	for a := range apps {
		has((a+1)%apps, a)
	}
	most := apps * (6 + int(time.Since(start)/(2*time.Second)))
	status, others := w.statusWrites(mark)
	assert.Equal(t, apps*objects, others, "one for each object")
	assert.LessOrEqual(t, status, most, "a few at first, then one in two seconds")
}

// lock holds writes back, on their way to the API server, until there are enough of them.
type lock struct {
	next http.RoundTripper
	// holds reports whether it holds a write.
	holds func(*http.Request) bool

	mu   sync.Mutex
	left int
	full chan struct{}
}

// RoundTrip implements http.RoundTripper.
func (l *lock) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPatch && l.holds(r) {
		l.mu.Lock()
		if l.left--; l.left == 0 {
			close(l.full)
		}
		l.mu.Unlock()
		select {
		case <-l.full:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	return l.next.RoundTrip(r)
}

// An API server that takes long to answer is sent many writes at once, of objects and of statuses.
func TestBurst_isUnderWayAtOnce(t *testing.T) {
	const atOnce = 50
	for what, holds := range map[string]func(*http.Request) bool{
		"objects":  func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/configmaps/") },
		"statuses": func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/status") },
	} {
		t.Run(what, func(t *testing.T) {
			w, stop := newStoppableAgentWorld(t, right("", "configmaps"))
			stop()
			apps := make([]*v1alpha1.Application, atOnce)
			for i := range apps {
				settings := configMap(member(name("settings", i)))
				settings.Annotations[v1alpha1.ApplicationAnnotation] = name("app", i)
				w.Create(settings)
				apps[i] = shop(named("ConfigMap", settings.Name))
				apps[i].Name = name("app", i)
				w.Create(apps[i])
			}
			held := &lock{holds: holds, left: atOnce, full: make(chan struct{})}
			w.startAgent(func(next http.RoundTripper) http.RoundTripper {
				held.next = next
				return held
			})
			env.Receive(t, held.full, "they are not written at once")
			for _, app := range apps {
				hub.AwaitReady(w.World, app)
			}
		})
	}
}
