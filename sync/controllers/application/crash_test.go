package application_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// lives lets through a limited number of writes in each namespace, as if the process was killed
// right after the last of them: its answer is lost, and every later write.
type lives struct {
	next http.RoundTripper

	mu   sync.Mutex
	left map[string]int
}

var errKilled = errors.New("the process was killed")

// RoundTrip implements http.RoundTripper.
func (l *lives) RoundTrip(r *http.Request) (*http.Response, error) {
	_, path, _ := strings.Cut(r.URL.Path, "/namespaces/")
	namespace, object, _ := strings.Cut(path, "/")
	if r.Method == http.MethodGet || strings.HasPrefix(object, "events") {
		return l.next.RoundTrip(r)
	}
	l.mu.Lock()
	left, limited := l.left[namespace]
	if limited && left > 0 {
		l.left[namespace]--
	}
	l.mu.Unlock()
	switch {
	case !limited || left > 1:
		return l.next.RoundTrip(r)
	case left == 1:
		if answer, err := l.next.RoundTrip(r); err == nil {
			_ = answer.Body.Close()
		}
	}
	return nil, errKilled
}

func (l *lives) over(namespace string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left[namespace] == 0
}

// crash is a change that is handled by a process that is killed after its first write, by one that
// is killed after its second, and so on, until one has made all its writes.
type crash struct {
	// open is true if the shop is open before; otherwise there is none.
	open bool
	// change changes a namespace while no process runs.
	change func(*world)
	// writes is how many writes that usually takes. If it takes more, more are tried.
	writes int
	// meanwhile changes it again after the process was killed; nil for no change.
	meanwhile func(*world)
	// done reports whether everything is as it should be.
	done func(*world) bool
}

// maxWrites is more than the writes that any of the changes takes, whatever is repeated.
const maxWrites = 40

func (c crash) run(t *testing.T) {
	for first, last := 1, c.writes+1; !c.killedAfter(t, first, last); first, last = last+1, last+4 {
		require.Less(t, last, maxWrites, "no process got through")
	}
}

// killedAfter kills processes after that many writes, in one namespace for each number, and reports
// whether the last of them needed no more.
func (c crash) killedAfter(t *testing.T, first, last int) (enough bool) {
	agent, stop := newStoppableAgentWorld(t, right("", "configmaps"), right("", "secrets"))
	process := &lives{left: map[string]int{}}
	var worlds []*world
	for n := first; n <= last; n++ {
		w := &world{&hub.World{T: t, Cluster: agent.Cluster, Client: agent.Client, Namespace: agent.Cluster.Namespace(t)}}
		worlds, process.left[w.Namespace] = append(worlds, w), n
		if c.open {
			w.openShop()
		}
	}
	if c.open {
		eventually(worlds, (*world).isOpen)
	}
	stop()
	for _, w := range worlds {
		c.change(w)
	}
	stop = agent.startAgent(func(next http.RoundTripper) http.RoundTripper {
		process.next = next
		return process
	})
	eventually(worlds, func(w *world) bool { return process.over(w.Namespace) || c.done(w) })
	stop()
	assert.True(t, first > 1 || process.over(worlds[0].Namespace), "nothing was written")
	for _, w := range worlds {
		w.assertHeld()
		if c.meanwhile != nil {
			c.meanwhile(w)
		}
	}
	stop = agent.startAgent()
	eventually(worlds, c.done)
	for _, w := range worlds {
		require.NoError(t, client.IgnoreNotFound(w.Client.Delete(t.Context(), shopIn(w))))
	}
	for _, w := range worlds {
		w.AwaitGone(&v1alpha1.Application{}, "shop")
	}
	stop()
	return !process.over(worlds[len(worlds)-1].Namespace)
}

// eventually waits until something is so in all worlds, which are in the order of their writes.
func eventually(worlds []*world, so func(*world) bool) {
	for n, w := range worlds {
		w.T.Helper()
		if !w.Eventually(func() bool { return so(w) }) {
			require.Fail(w.T, "it is not so in time", "in namespace %d of %d: %s", n+1, len(worlds), w.tell())
		}
	}
}

func shopIn(w *world) *v1alpha1.Application {
	return &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "shop"}}
}

// tell describes a namespace.
func (w *world) tell() string {
	text, _ := w.Cluster.Kubectl(w.T.Context(), "", "-n", w.Namespace, "get", "applications.apps.waybill.dev,configmaps,secrets,pods", "-o", "yaml")
	return text
}

// list returns what there is of a kind.
func (w *world) list(list client.ObjectList) []client.Object {
	w.T.Helper()
	require.NoError(w.T, w.Client.List(w.T.Context(), list, inNamespace(w)))
	var objects []client.Object
	require.NoError(w.T, meta.EachListItem(list, func(o runtime.Object) error {
		objects = append(objects, o.(client.Object))
		return nil
	}))
	return objects
}

// owned returns the kinds and names of what refers to the Application.
func (w *world) owned() []string {
	w.T.Helper()
	var names []string
	for kind, list := range map[string]client.ObjectList{"ConfigMap": &corev1.ConfigMapList{}, "Secret": &corev1.SecretList{}} {
		for _, o := range w.list(list) {
			if slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.Name == "shop" }) {
				names = append(names, kind+"/"+o.GetName())
			}
		}
	}
	slices.Sort(names)
	return names
}

// assertHeld checks that wherever there is an ownerReference, or a Pod, the Application cannot go
// before it was reconciled, and that its status names the kind (C42).
func (w *world) assertHeld() {
	w.T.Helper()
	app, owned := &v1alpha1.Application{}, w.owned()
	if !w.Exists(app, "shop") {
		return // the garbage collector is at work
	}
	if len(owned) > 0 || len(w.pods()) > 0 {
		assert.Contains(w.T, app.Finalizers, v1alpha1.OwnershipFinalizer, "%v", owned)
	}
	for _, name := range owned {
		kind, _, _ := strings.Cut(name, "/")
		assert.True(w.T, slices.ContainsFunc(app.Status.Components, func(c v1alpha1.ComponentStatus) bool { return c.Kind == kind }),
			"the status does not name %s: %+v", kind, app.Status.Components)
	}
}

// openShop creates what the shop is made of, what it is not made of, and the shop.
func (w *world) openShop() {
	w.T.Helper()
	w.Create(configMap(metav1.ObjectMeta{Name: "settings", Labels: labels()}))
	w.Create(configMap(member("kept")))
	w.Create(secret(member("password")))
	w.Create(configMap(metav1.ObjectMeta{Name: "foreign", Labels: labels(), Annotations: map[string]string{v1alpha1.ApplicationAnnotation: ""}}))
	app := shop(named("ConfigMap", ""), named("Secret", "password"))
	app.Spec.HealthCheck = healthCheck("first")
	w.Create(app)
}

// isOpen reports whether the shop owns what it is made of, and has its Pod.
func (w *world) isOpen() bool {
	return w.owns("3/3", "first", "ConfigMap/kept", "ConfigMap/settings", "Secret/password")
}

// owns reports whether the status says so many components, the shop owns just these objects, and
// has one Pod, with a container of that name; empty for no Pod.
func (w *world) owns(ready, container string, objects ...string) bool {
	w.T.Helper()
	app := &v1alpha1.Application{}
	if !w.Exists(app, "shop") || !app.DeletionTimestamp.IsZero() || app.Status.ComponentsReady != ready || app.Status.ObservedGeneration != app.Generation {
		return false
	}
	for _, c := range app.Status.Components {
		if c.Owned != slices.Contains(objects, c.Kind+"/"+c.Name) {
			return false
		}
	}
	switch pods := w.pods(); {
	case container == "" && len(pods) > 0, container != "" && (len(pods) != 1 || pods[0].Spec.Containers[0].Name != container):
		return false
	}
	return slices.Equal(w.owned(), objects)
}

// stays reports whether these are the ConfigMaps and Secrets of the test that are still there, that
// they have no owner, and that neither the shop nor its Pod is there any more.
func (w *world) stays(objects ...string) bool {
	w.T.Helper()
	if w.Exists(&v1alpha1.Application{}, "shop") {
		return false
	}
	var there []string
	for kind, list := range map[string]client.ObjectList{"ConfigMap": &corev1.ConfigMapList{}, "Secret": &corev1.SecretList{}} {
		for _, o := range w.list(list) {
			if o.GetLabels()["app"] != "" && o.GetDeletionTimestamp() == nil {
				there = append(there, kind+"/"+o.GetName())
			}
		}
	}
	slices.Sort(there)
	return slices.Equal(there, objects) && len(w.owned()) == 0 && len(w.pods()) == 0
}

// change edits the shop, and then, unless options is nil, deletes it.
func (w *world) change(edit func(*v1alpha1.Application), options ...client.DeleteOption) {
	w.T.Helper()
	app := shopIn(w)
	hub.Change(w.World, app, edit)
	if options != nil {
		require.NoError(w.T, w.Client.Delete(w.T.Context(), app, options...))
	}
}

// sellNoPasswords drops a component from the spec, and takes another out of the shop.
func (w *world) sellNoPasswords(options ...client.DeleteOption) {
	w.T.Helper()
	kept := configMap(metav1.ObjectMeta{Namespace: w.Namespace, Name: "kept"})
	hub.Change(w.World, kept, func(o *corev1.ConfigMap) { o.Annotations[v1alpha1.ApplicationAnnotation] = "" })
	w.change(func(app *v1alpha1.Application) {
		app.Spec.Components = app.Spec.Components[:1]
		app.Spec.HealthCheck = healthCheck("second")
	}, options...)
}

func background() client.DeleteOption {
	return client.PropagationPolicy(metav1.DeletePropagationBackground)
}

// Whatever the process had written when it was killed, the next one comes to the same end, nothing
// is deleted that is not listed, and nothing is left behind (P9, A62, A68, A83, A84, C7, C42).
func TestCrash_betweenAnyTwoWrites(t *testing.T) {
	for name, c := range map[string]crash{
		"owning": {
			change: (*world).openShop,
			writes: 9,
			done:   (*world).isOpen,
		},
		"owning, and deleted with nothing listed any more": {
			change: (*world).openShop,
			writes: 9,
			meanwhile: func(w *world) {
				w.change(func(app *v1alpha1.Application) { app.Spec.Components = nil }, background())
			},
			done: func(w *world) bool {
				return w.isOpen() || w.stays("ConfigMap/foreign", "ConfigMap/kept", "ConfigMap/settings", "Secret/password")
			},
		},
		"giving back, and replacing the Pod": {
			open:   true,
			writes: 7,
			change: func(w *world) { w.sellNoPasswords() },
			done:   func(w *world) bool { return w.owns("1/1", "second", "ConfigMap/settings") },
		},
		"observing from now on, without a Pod": {
			open:   true,
			writes: 8,
			change: func(w *world) {
				w.change(func(app *v1alpha1.Application) {
					app.Spec.Ownership, app.Spec.HealthCheck = v1alpha1.OwnershipObserve, nil
				})
			},
			done: func(w *world) bool {
				app := &v1alpha1.Application{}
				return w.owns("3/3", "") && w.Exists(app, "shop") && len(app.Finalizers) == 0
			},
		},
		"going": {
			open:   true,
			writes: 6,
			change: func(w *world) { w.sellNoPasswords(background()) },
			done:   func(w *world) bool { return w.stays("ConfigMap/foreign", "ConfigMap/kept", "Secret/password") },
		},
		"going, and leaving orphans": {
			open:   true,
			writes: 4,
			change: func(w *world) { w.sellNoPasswords(orphan()) },
			done: func(w *world) bool {
				return w.stays("ConfigMap/foreign", "ConfigMap/kept", "ConfigMap/settings", "Secret/password")
			},
		},
	} {
		t.Run(name, c.run)
	}
}
