package application_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

// A68, A102: components go with their Application, by the garbage collector.
func TestDeletion_takesComponentsAlong(t *testing.T) {
	w := newWorld(t)
	settings, other := configMap(member("settings")), configMap(metav1.ObjectMeta{Name: "other"})
	w.Create(settings)
	w.Create(other)
	app := shop(named("ConfigMap", "settings"))
	w.Create(app)
	hub.AwaitReady(w.World, app)
	w.delete(app)
	w.AwaitGone(&corev1.ConfigMap{}, "settings")
	assert.True(t, w.Exists(other, "other"), "what is not listed stays")
}

// awaitCollected waits until the garbage collector knows that an Application is gone: until it
// deletes what refers to it. That is of a kind that no Application lists, because the controller
// takes references off what it sees while it does not yet see the Application gone.
func (w *world) awaitCollected(app *v1alpha1.Application) {
	w.T.Helper()
	dependent := &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Name: "dependent", OwnerReferences: []metav1.OwnerReference{ownerReference(app)}},
		Spec:       corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{}},
	}
	w.Create(dependent)
	w.AwaitGone(dependent, "dependent")
}

func ownerReference(app *v1alpha1.Application) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ApplicationKind, Name: app.Name, UID: app.UID}
}

// C42: with --cascade=orphan everything stays, and nothing is owned, also what was given an
// ownerReference so lately that the garbage collector has not seen it yet.
func TestDeletion_orphaning(t *testing.T) {
	w := newWorld(t)
	app := shop(named("ConfigMap", ""))
	w.Create(app)
	const objects = 20
	for i := range objects {
		w.Create(configMap(member(name("settings", i))))
	}
	last := configMap(member("last"))
	w.Create(last)
	w.awaitOwned(last, app, true)
	w.delete(app, orphan())

	w.awaitCollected(app)
	list := &corev1.ConfigMapList{}
	require.NoError(t, w.Client.List(t.Context(), list, inNamespace(w), client.MatchingLabels(labels())))
	require.Len(t, list.Items, objects+1)
	for i := range list.Items {
		assert.Empty(t, list.Items[i].OwnerReferences, list.Items[i].Name)
		assert.True(t, list.Items[i].DeletionTimestamp.IsZero(), list.Items[i].Name)
	}
}

// C7, C42: what is no component any more is not deleted with the Application, also when that
// happened while no process ran: the references are taken off before it goes.
func TestDeletion_sparesWhatIsNoComponent(t *testing.T) {
	w, stop := newStoppableAgentWorld(t, right("", "configmaps"), right("", "secrets"))
	kept, unlisted, component := configMap(member("kept")), secret(member("unlisted")), configMap(member("component"))
	for _, o := range []client.Object{kept, unlisted, component} {
		w.Create(o)
	}
	app := shop(named("ConfigMap", ""), named("Secret", "unlisted"))
	w.Create(app)
	hub.AwaitReady(w.World, app)
	stop()

	hub.Change(w.World, kept, func(o *corev1.ConfigMap) { o.Annotations[v1alpha1.ApplicationAnnotation] = "" })
	hub.Change(w.World, app, func(app *v1alpha1.Application) { app.Spec.Components = app.Spec.Components[:1] })
	require.NoError(t, w.Client.Delete(t.Context(), app))
	require.True(t, w.Exists(app, "shop"), "the finalizer holds it")
	w.startAgent()
	w.AwaitGone(&v1alpha1.Application{}, "shop")
	w.AwaitGone(&corev1.ConfigMap{}, "component")
	require.True(t, w.Exists(kept, "kept"))
	assert.Empty(t, kept.OwnerReferences)
	require.True(t, w.Exists(unlisted, "unlisted"))
	assert.Empty(t, unlisted.OwnerReferences)
}

// A namespace that is being deleted takes its Applications along.
func TestDeletion_ofTheNamespace(t *testing.T) {
	w := newWorld(t)
	w.Create(configMap(member("settings")))
	app := shop(named("ConfigMap", "settings"), widgetNamed("never-defined"))
	app.Spec.HealthCheck = healthCheck("check")
	w.Create(app)
	w.awaitComponents(app, "1/2")
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}}
	require.NoError(t, w.Client.Delete(context.Background(), ns))
	require.True(t, w.Eventually(func() bool { return !w.ExistsIn("", ns, w.Namespace) }), "the namespace is not deleted")
}

// C42: a kind that is gone, or may not be seen any more, does not hold a deletion.
func TestDeletion_doesNotWaitForWhatCannotBeSeen(t *testing.T) {
	w := newAgentWorld(t, right("", "configmaps"), right("", "secrets"))
	settings := configMap(member("settings"))
	w.Create(settings)
	app := shop(named("ConfigMap", "settings"), named("Service", "never-granted"))
	w.Create(app)
	hub.AwaitReason(w.World, app, v1alpha1.ForbiddenReason)
	w.awaitOwned(settings, app, true)
	w.delete(app)
	w.AwaitGone(&corev1.ConfigMap{}, "settings")
	require.True(t, w.Eventually(func() bool {
		events := &eventsv1.EventList{}
		require.NoError(t, w.Client.List(t.Context(), events, inNamespace(w)))
		return slices.ContainsFunc(events.Items, func(e eventsv1.Event) bool {
			return e.Reason == v1alpha1.DeleteFailedReason && strings.Contains(e.Note, "cannot list and watch services")
		})
	}), "it is not told that Services may go with it")
}

// patches holds the PATCH of an object back, on its way to the API server, until it is let through.
type patches struct {
	http.RoundTripper
	object      string
	held, going chan struct{}
}

// RoundTrip implements http.RoundTripper.
func (p *patches) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodPatch && strings.HasSuffix(request.URL.Path, "/"+p.object) {
		select {
		case p.held <- struct{}{}:
		default:
		}
		select {
		case <-p.going:
		case <-request.Context().Done():
			return nil, request.Context().Err()
		}
	}
	return p.RoundTripper.RoundTrip(request)
}

// C42: a reference that is on its way when the Application is deleted is waited for, and taken off
// where the object is no component any more.
func TestDeletion_waitsForWhatIsOnItsWay(t *testing.T) {
	w, stop := newStoppableAgentWorld(t, right("", "configmaps"))
	stop()
	late := configMap(member("late"))
	w.Create(late)
	app := shop(named("ConfigMap", "late"), named("ConfigMap", "other"))
	w.Create(app)
	held, going := make(chan struct{}, 1), make(chan struct{})
	w.startAgent(func(through http.RoundTripper) http.RoundTripper {
		return &patches{RoundTripper: through, object: "late", held: held, going: going}
	})
	env.Receive(t, held, "no reference is given")

	hub.Change(w.World, app, func(app *v1alpha1.Application) { app.Spec.Components = app.Spec.Components[1:] })
	require.NoError(t, w.Client.Delete(t.Context(), app))
	message := hub.AwaitReason(w.World, app, v1alpha1.DeletingReason)
	assert.Equal(t, "an ownerReference is still being written", message)
	close(going)
	w.AwaitGone(&v1alpha1.Application{}, "shop")
	require.True(t, w.Exists(late, "late"))
	assert.Empty(t, late.OwnerReferences)
	assert.True(t, late.DeletionTimestamp.IsZero())
}

// C42: that it is an orphan deletion is not forgotten when the process ends after the garbage
// collector has removed its finalizer. A reference that the collector did not know of is still
// taken off.
func TestDeletion_orphaningOutlivesTheProcess(t *testing.T) {
	w, stop := newStoppableAgentWorld(t, right("", "configmaps"))
	stop()
	late := configMap(member("late"))
	w.Create(late)
	app := shop(named("ConfigMap", "late"))
	w.Create(app)
	held, going := make(chan struct{}, 1), make(chan struct{})
	stop = w.startAgent(func(through http.RoundTripper) http.RoundTripper {
		return &patches{RoundTripper: through, object: "late", held: held, going: going}
	})
	env.Receive(t, held, "no reference is given")
	require.NoError(t, w.Client.Delete(t.Context(), app, orphan()))
	hub.Await(w.World, app, "the garbage collector does not end", func(app *v1alpha1.Application) bool {
		return conditions.IsTrue(app, v1alpha1.OrphaningCondition) && slices.Equal(app.Finalizers, []string{v1alpha1.OwnershipFinalizer})
	})
	stop()
	hub.Change(w.World, late, func(o *corev1.ConfigMap) { // what was on its way has arrived
		o.OwnerReferences = []metav1.OwnerReference{ownerReference(app)}
	})

	w.startAgent()
	w.AwaitGone(&v1alpha1.Application{}, "shop")
	w.awaitCollected(app)
	require.True(t, w.Exists(late, "late"))
	assert.Empty(t, late.OwnerReferences)
	assert.True(t, late.DeletionTimestamp.IsZero())
}

// A selector that means nothing gets past the schema where no webhook is registered. It must not
// hold the Application, or its namespace, for ever.
func TestDeletion_ofAnInvalidSpec(t *testing.T) {
	w := newWorld(t)
	app := shop(named("ConfigMap", ""))
	app.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Like"}}}
	w.Create(app)
	hub.AwaitReason(w.World, app, v1alpha1.InvalidSpecReason)
	w.delete(app)
	w.AwaitGone(&v1alpha1.Application{}, "shop")
}
