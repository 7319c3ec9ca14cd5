package applicationinstallation_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// stay is a finalizer of others.
const stay = "tests.waybill.dev/stay"

func keyOf(o client.Object) types.NamespacedName { return client.ObjectKeyFromObject(o) }

// K9: what is deleted together goes in the reverse order, whichever is deleted first.
func TestInstallation_isRemovedAfterWhatDependsOnIt(t *testing.T) {
	w := newWorld(t)
	w.define(nil)
	first := w.app("first", "1.0.0")
	middle := w.app("middle", "1.0.0", "first")
	last := w.app("last", "1.0.0", "middle")
	hub.AwaitReady(w.World, last)
	app := &v1alpha1.Application{}
	require.True(t, w.Exists(app, "last"))
	hub.Change(w.World, app, func(a *v1alpha1.Application) { a.Finalizers = []string{stay} })

	for _, inst := range []client.Object{first, middle, last} {
		require.NoError(t, w.Client.Delete(t.Context(), inst))
	}
	gone := func(name string) string {
		return "waiting for ApplicationInstallation " + w.Namespace + "/" + name + ", which depends on it, to be gone"
	}
	w.awaitWait(first, v1alpha1.DeletingReason, gone("middle"))
	w.awaitWait(middle, v1alpha1.DeletingReason, gone("last"))
	assert.True(t, w.Exists(&appsv1.Deployment{}, "first"))
	assert.True(t, w.Exists(&appsv1.Deployment{}, "middle"))
	hub.Change(w.World, app, func(a *v1alpha1.Application) { a.Finalizers = nil })
	w.AwaitGone(&v1alpha1.ApplicationInstallation{}, "first")
	assert.False(t, w.Exists(&v1alpha1.ApplicationInstallation{}, "middle"))
	assert.False(t, w.Exists(&v1alpha1.ApplicationInstallation{}, "last"))
}

// K9: what others depend on can be deleted alone; those that stay say that it is gone at their next upgrade.
func TestInstallation_isRemovedAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.define(nil)
	db := w.app("db", "1.0.0")
	web := w.app("web", "1.0.0", "db")
	hub.AwaitReady(w.World, web)
	require.NoError(t, w.Client.Delete(t.Context(), db))
	w.AwaitGone(&v1alpha1.ApplicationInstallation{}, "db")
	assert.True(t, w.Exists(&appsv1.Deployment{}, "web"))
	w.move(web, "1.1.0")
	w.awaitWait(web, v1alpha1.DependencyNotReadyReason, notReady(w, "db", "which does not exist"))
	assert.True(t, w.Exists(&appsv1.Deployment{}, "web"))
}

// K9, K52: a version that is withdrawn while others wait for it leaves them waiting; it is gone, and nothing
// is installed that depends on it.
func TestInstallation_waitsForWhatIsWithdrawn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	definition := w.define(nil)
	db := w.app("db", "1.1.0")
	hub.AwaitReady(w.World, db)
	w.move(db, nowhere)
	hub.AwaitReason(w.World, db, v1alpha1.DefinitionNotFoundReason)
	web := w.app("web", "1.0.0", "db")
	w.awaitWait(web, v1alpha1.DependencyNotReadyReason, notReady(w, "db", "which is not ready: DefinitionNotFound"))
	w.move(db, "1.1.0")
	w.awaitVersion(db, "1.1.0")
	hub.AwaitReady(w.World, web)
	w.move(web, nowhere)
	hub.Change(w.World, definition, func(d *v1alpha1.ApplicationDefinition) {
		metaAnnotate(d, v1alpha1.ForceRemoveAnnotation, "1.1.0")
		d.Spec.Versions = d.Spec.Versions[:1]
	})
	w.AwaitGone(&v1alpha1.ApplicationInstallation{}, "db")
	assert.True(t, w.Exists(&appsv1.Deployment{}, "web"), "what depended on it stays")
	w.move(web, "1.0.0")
	hub.AwaitReady(w.World, web)
}

// K9: installations of a namespace that is deleted wait for each other in order, also those that wait for
// one another, and nothing is left.
func TestInstallation_endsWithItsNamespace(t *testing.T) {
	w := newWorld(t)
	w.define(nil)
	db := w.app("db", "1.0.0")
	web := w.app("web", "1.0.0", "db")
	other := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace + "-more"}}
	require.NoError(t, w.Client.Create(t.Context(), other))
	elsewhere := &v1alpha1.ApplicationInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: other.Name, Name: "elsewhere"}}
	elsewhere.Spec.ApplicationRef = v1alpha1.ApplicationReference{Name: w.Namespace, Version: "1.0.0"}
	elsewhere.Spec.DependsOn = []v1alpha1.InstallationDependency{{Name: "web", Namespace: w.Namespace}}
	require.NoError(t, w.Client.Create(t.Context(), elsewhere))
	hub.AwaitReady(w.World, elsewhere)
	hub.AwaitReady(w.World, web)
	hub.Change(w.World, db, func(i *v1alpha1.ApplicationInstallation) {
		i.Spec.DependsOn = []v1alpha1.InstallationDependency{{Name: "elsewhere", Namespace: other.Name}}
	})

	// As the controller of namespaces does it; there is none here.
	require.NoError(t, w.Client.DeleteAllOf(t.Context(), &v1alpha1.ApplicationInstallation{}, client.InNamespace(w.Namespace)))
	w.AwaitGone(&v1alpha1.ApplicationInstallation{}, "db")
	w.AwaitGone(&v1alpha1.ApplicationInstallation{}, "web")
	assert.True(t, w.ExistsIn(other.Name, &appsv1.Deployment{}, "elsewhere"), "it depends on web, and stays")
	require.NoError(t, w.Client.DeleteAllOf(t.Context(), &v1alpha1.ApplicationInstallation{}, client.InNamespace(other.Name)))
	require.True(t, w.Eventually(func() bool { return !w.ExistsIn(other.Name, &v1alpha1.ApplicationInstallation{}, "elsewhere") }))
}

// K9: one that is uninstalled already holds up no others, although a finalizer of its users keeps it.
func TestInstallation_doesNotWaitForWhatIsOnlyHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.define(nil)
	db := w.app("db", "1.0.0")
	web := w.app("web", "1.0.0", "db")
	hub.AwaitReady(w.World, web)
	hub.Change(w.World, web, func(i *v1alpha1.ApplicationInstallation) { i.Finalizers = append(i.Finalizers, stay) })
	require.NoError(t, w.Client.Delete(t.Context(), web))
	hub.Await(w.World, web, "it is uninstalled", func(i *v1alpha1.ApplicationInstallation) bool {
		return slices.Equal(i.Finalizers, []string{stay})
	})

	require.NoError(t, w.Client.Delete(t.Context(), db))
	w.AwaitGone(&v1alpha1.ApplicationInstallation{}, "db")
	hub.Change(w.World, web, func(i *v1alpha1.ApplicationInstallation) { i.Finalizers = nil })
}

// K9: what requires the definition is counted where it is in another namespace, and not waited for where another
// installation meets that.
func TestInstallation_countsDependentsOfOtherNamespaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.define(nil)
	needy := &v1alpha1.ApplicationDefinition{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace + "-needy"}}
	needy.Spec.Requires = []v1alpha1.ApplicationRequirement{{Name: w.Namespace}}
	needy.Spec.Versions = []v1alpha1.ApplicationVersion{{Version: "1.0.0", Template: &v1alpha1.ApplicationTemplate{Source: w.webSource("1.0.0")}}}
	w.Create(needy)
	other := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace + "-more"}}
	require.NoError(t, w.Client.Create(t.Context(), other))
	db, spare := w.app("db", "1.0.0"), w.app("spare", "1.0.0")
	shop := &v1alpha1.ApplicationInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: other.Name, Name: "shop"}}
	shop.Spec.ApplicationRef = v1alpha1.ApplicationReference{Name: needy.Name, Version: "1.0.0"}
	require.NoError(t, w.Client.Create(t.Context(), shop))
	hub.AwaitReady(w.World, shop)
	hub.AwaitReady(w.World, spare)
	app := &v1alpha1.Application{}
	require.True(t, w.ExistsIn(other.Name, app, "shop"))
	hub.Change(w.World, app, func(a *v1alpha1.Application) { a.Finalizers = []string{stay} })
	require.NoError(t, w.Client.Delete(t.Context(), shop))

	require.NoError(t, w.Client.Delete(t.Context(), db))
	w.AwaitGone(&v1alpha1.ApplicationInstallation{}, "db")
	require.NoError(t, w.Client.Delete(t.Context(), spare))
	w.awaitWait(spare, v1alpha1.DeletingReason, "waiting 10 minutes at most for installations of other namespaces that depend on it to be gone: 1")
	hub.Change(w.World, app, func(a *v1alpha1.Application) { a.Finalizers = nil })
	w.AwaitGone(&v1alpha1.ApplicationInstallation{}, "spare")
	assert.False(t, w.ExistsIn(other.Name, &v1alpha1.ApplicationInstallation{}, "shop"))
}
