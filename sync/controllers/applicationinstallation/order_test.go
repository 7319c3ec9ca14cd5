package applicationinstallation_test

import (
	"context"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	appsv1 "k8s.io/api/apps/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// nowhere is a version that no definition offers.
const nowhere = "9.9.9"

// app creates an installation of a version of the test's definition that depends on others of its namespace.
func (w *world) app(name, version string, dependsOn ...string) *v1alpha1.ApplicationInstallation {
	w.T.Helper()
	inst := &v1alpha1.ApplicationInstallation{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.ApplicationInstallationSpec{
			ApplicationRef: v1alpha1.ApplicationReference{Name: w.Namespace, Version: version}, Values: values(w.T, replicas(2)),
		},
	}
	for _, other := range dependsOn {
		inst.Spec.DependsOn = append(inst.Spec.DependsOn, v1alpha1.InstallationDependency{Name: other})
	}
	w.Create(inst)
	return inst
}

func (w *world) move(inst *v1alpha1.ApplicationInstallation, version string) {
	w.T.Helper()
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { i.Spec.ApplicationRef.Version = version })
}

func (w *world) awaitVersion(inst *v1alpha1.ApplicationInstallation, version string) *v1alpha1.ApplicationInstallation {
	w.T.Helper()
	return hub.Await(w.World, inst, version, func(i *v1alpha1.ApplicationInstallation) bool {
		return conditions.IsReady(i) && i.Status.Application.Version == version && i.Status.ObservedGeneration == i.Generation
	})
}

// awaitWait waits until an installation says what it waits for.
func (w *world) awaitWait(inst *v1alpha1.ApplicationInstallation, reason, message string) *v1alpha1.ApplicationInstallation {
	w.T.Helper()
	return hub.Await(w.World, inst, message, func(i *v1alpha1.ApplicationInstallation) bool {
		return conditions.GetReason(i, v1alpha1.ReadyCondition) == reason && conditions.GetMessage(i, v1alpha1.ReadyCondition) == message
	})
}

func notReady(w *world, name, why string) string {
	return "waiting for ApplicationInstallation " + w.Namespace + "/" + name + ", " + why
}

// K9: an installation is begun when what it depends on is ready: it says what it waits for, which may not
// exist yet, and never become ready.
func TestInstallation_waitsForWhatItDependsOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.define(nil)
	last := w.app("last", "1.0.0", "middle")
	w.awaitWait(last, v1alpha1.DependencyNotReadyReason, notReady(w, "middle", "which does not exist"))
	middle := w.app("middle", "1.0.0", "first", "other")
	w.awaitWait(middle, v1alpha1.DependencyNotReadyReason, notReady(w, "first", "which does not exist (and 1 more)"))
	w.awaitWait(last, v1alpha1.DependencyNotReadyReason, notReady(w, "middle", "which is not ready: DependencyNotReady"))
	first := w.app("first", nowhere)
	w.app("other", "1.0.0")
	w.awaitWait(middle, v1alpha1.DependencyNotReadyReason, notReady(w, "first", "which is not ready: DefinitionNotFound"))
	assert.Empty(t, w.releases("middle"))
	assert.Empty(t, w.releases("last"))

	w.move(first, "1.0.0")
	last = hub.AwaitReady(w.World, last)
	require.NoError(t, w.get(middle))
	assert.False(t, last.Status.Application == nil || !conditions.IsReady(middle))
	assert.NotEmpty(t, last.Status.Begun)
	require.NoError(t, w.get(first))
	assert.Empty(t, first.Status.Begun, "it waits for nothing")
}

// K9: an upgrade waits as well, for the generation that is wanted by then; what is installed is corrected
// meanwhile, and stays whatever becomes of what it depends on.
func TestInstallation_waitsBeforeAnUpgrade(t *testing.T) {
	w := newWorld(t)
	w.define(nil)
	db := w.app("db", "1.0.0")
	web := w.app("web", "1.0.0", "db")
	w.awaitVersion(web, "1.0.0")

	w.move(db, nowhere)
	w.move(web, "1.1.0")
	held := w.awaitWait(web, v1alpha1.DependencyNotReadyReason, notReady(w, "db", "which is not ready: DefinitionNotFound"))
	assert.Equal(t, "1.0.0", held.Status.Application.Version)
	hub.Change(w.World, w.deployment("web"), func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](7) })
	require.True(t, w.Eventually(func() bool { return isReplicas(w, 2) }), "drift is corrected")

	engageAnew()
	hub.Change(w.World, w.deployment("web"), func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](7) })
	require.True(t, w.Eventually(func() bool { return isReplicas(w, 2) }), "after a restart as well")
	require.NoError(t, w.get(web))
	assert.EqualValues(t, 1, web.Status.Release.Revision)

	w.move(db, "1.1.0")
	w.awaitVersion(web, "1.1.0")
	require.NoError(t, w.get(db))
	assert.Equal(t, "1.1.0", db.Status.Application.Version)

	w.move(db, nowhere)
	hub.AwaitReason(w.World, db, v1alpha1.DefinitionNotFoundReason)
	engageAnew()
	web = hub.Reconcile(w.World, web)
	assert.True(t, conditions.IsReady(web), "it is installed, and waits for nothing: %s", conditions.GetMessage(web, v1alpha1.ReadyCondition))
}

// K9: a condition decides instead of being ready.
func TestInstallation_waitsForACondition(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.define(nil)
	db := w.app("db", "1.0.0")
	web := &v1alpha1.ApplicationInstallation{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	web.Spec.ApplicationRef = v1alpha1.ApplicationReference{Name: w.Namespace, Version: "1.0.0"}
	const condition = "self.status.application.version == '1.1.0'"
	web.Spec.DependsOn = []v1alpha1.InstallationDependency{{Name: "db", Condition: condition}}
	w.Create(web)
	w.awaitVersion(db, "1.0.0")
	w.awaitWait(web, v1alpha1.DependencyNotReadyReason, notReady(w, "db", `of which the condition "`+condition+`" is not true`))
	w.move(db, "1.1.0")
	hub.AwaitReady(w.World, web)
}

// K9: installations that wait for one another say so, and go on when one of them does not any more.
func TestInstallation_namesTheCycle(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.define(nil)
	one := w.app("one", "1.0.0", "two")
	two := w.app("two", "1.0.0", "one")
	name := func(s string) string { return w.Namespace + "/" + s }
	rest := ": remove one of them from spec.dependsOn, or from spec.requires of its definition"
	one = w.awaitWait(one, v1alpha1.DependencyCycleReason, "the installation waits for itself: "+name("one")+" -> "+name("two")+" -> "+name("one")+rest)
	assert.True(t, conditions.IsStalled(one))
	w.awaitWait(two, v1alpha1.DependencyCycleReason, "the installation waits for itself: "+name("two")+" -> "+name("one")+" -> "+name("two")+rest)
	hub.Change(w.World, two, func(i *v1alpha1.ApplicationInstallation) { i.Spec.DependsOn = nil })
	hub.AwaitReady(w.World, one)
}

// K9: what a definition requires is waited for, in a version that fits, and named.
func TestInstallation_waitsForWhatItsDefinitionRequires(t *testing.T) {
	w := newWorld(t)
	w.define(nil)
	needy := &v1alpha1.ApplicationDefinition{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace + "-needy"}}
	needy.Spec.Requires = []v1alpha1.ApplicationRequirement{{Name: w.Namespace, Version: ">= 1.1"}}
	needy.Spec.Versions = []v1alpha1.ApplicationVersion{{Version: "2.0.0", Template: &v1alpha1.ApplicationTemplate{Source: w.webSource("1.0.0")}}}
	w.Create(needy)
	web := &v1alpha1.ApplicationInstallation{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	web.Spec.ApplicationRef = v1alpha1.ApplicationReference{Name: needy.Name, Version: "2.0.0"}
	w.Create(web)
	requires := "ApplicationDefinition " + needy.Name + " requires " + w.Namespace + " >= 1.1, "
	w.awaitWait(web, v1alpha1.RequirementMissingReason, requires+"of which the cluster has no installation")
	db := w.app("db", "1.0.0")
	w.awaitWait(web, v1alpha1.RequirementMissingReason, requires+"but ApplicationInstallation "+w.Namespace+"/db has version 1.0.0")
	assert.Empty(t, w.releases("web"))
	w.move(db, "1.1.0")
	hub.AwaitReady(w.World, web)

	require.NoError(t, w.Client.Delete(t.Context(), db))
	require.NoError(t, w.Client.Delete(t.Context(), web))
	w.AwaitGone(&v1alpha1.ApplicationInstallation{}, "db")
	assert.False(t, w.Exists(&v1alpha1.ApplicationInstallation{}, "web"), "what requires it went first")
}

func (w *world) get(inst *v1alpha1.ApplicationInstallation) error {
	return w.Client.Get(context.Background(), keyOf(inst), inst)
}

// K9: what is installed and never becomes healthy holds up those that depend on it, and no others; they say why, and
// go on when it does.
func TestInstallation_waitsForWhatIsNeverHealthy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.define(nil)
	allow := w.noPods()
	without := func(name string, dependsOn ...string) *v1alpha1.ApplicationInstallation {
		inst := w.app(name, "1.0.0", dependsOn...)
		hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { i.Spec.Values = values(t, replicas(0)) })
		return inst
	}
	db := &v1alpha1.ApplicationInstallation{ObjectMeta: objectMeta("db")}
	db.Spec = v1alpha1.ApplicationInstallationSpec{
		ApplicationRef: v1alpha1.ApplicationReference{Name: w.Namespace, Version: "1.0.0"}, Values: values(t, replicas(1)), DeployOptions: waiting(time.Hour, false),
	}
	w.Create(db)
	web := without("web", "db")
	other := without("other")
	hub.AwaitReady(w.World, other)
	w.awaitAwaited(db, 1)
	hub.Change(w.World, db, func(i *v1alpha1.ApplicationInstallation) { i.Spec.DeployOptions = waiting(short, false) })
	hub.AwaitReason(w.World, db, v1alpha1.NotHealthyReason)
	w.awaitWait(web, v1alpha1.DependencyNotReadyReason, notReady(w, "db", "which is not ready: "+v1alpha1.NotHealthyReason))
	assert.Empty(t, w.releases("web"))
	allow()
	hub.AwaitReady(w.World, web)
}
