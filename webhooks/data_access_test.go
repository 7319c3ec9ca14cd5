package webhooks_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// mayRestore are the rights to restore a snapshot that holds Services.
func mayRestore() []permission {
	return concat([]permission{in(v1alpha1.Group, "applicationsnapshots", "restore")}, on(v1alpha1.Group, "applications", "list"), on("", "pods", "create"),
		on("", "services", "create", "get", "list", "patch", "delete"))
}

// mayRollBack are the rights to go back to it.
func mayRollBack() []permission {
	return concat(mayRestore(), on("", "services", "update"), on("", "persistentvolumeclaims", "create", "update", "delete"),
		on("apps", "deployments/scale", "update"), on("apps", "statefulsets/scale", "update"))
}

// C24, C35, S28: a snapshot of one tenant is neither restored nor rolled back to by another, who does
// not even learn whether it is there.
func TestData_snapshotsOfOthers(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	own, other := c.Namespace(t), c.Namespace(t)
	readySnapshot(t, admin, other, "services")
	user := c.with(t, own, mayRollBack())
	for _, source := range []string{"monday", "never-was"} {
		app, back := newRestore(own, other), newRollback(own, "mongo")
		app.Spec.Source.SnapshotRef.Name = source
		back.Spec.Source = *app.Spec.Source
		for _, obj := range []client.Object{app, back} {
			err := user.Create(t.Context(), obj)
			require.True(t, apierrors.IsForbidden(err), "%T: %v", obj, err)
			assert.ErrorContains(t, err, `may not restore applicationsnapshots.apps.waybill.dev "`+source+`" in namespace "`+other+`" (it reveals`)
			assert.NotContains(t, err.Error(), ";", "nothing else is said")
		}
	}
	c.grant(t, admin, user.(named).name, other, in(v1alpha1.Group, "applicationsnapshots", "restore", "monday").rule)
	created(t, admin, user, newRestore(own, other))
}

// C15, C24, C35, S73, S76: what cannot be restored, or not yet, is refused with what to do: no user can
// say yet which rights it takes.
func TestData_snapshotsThatAreNotReady(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	for name, tc := range map[string]struct {
		change  func(t *testing.T, s *v1alpha1.ApplicationSnapshot)
		message string
	}{
		"gone": {func(t *testing.T, s *v1alpha1.ApplicationSnapshot) {
			require.NoError(t, admin.Delete(t.Context(), s))
		}, "spec.source.snapshotRef: Not found"},
		"in progress": {func(t *testing.T, s *v1alpha1.ApplicationSnapshot) {
			s.Status.Phase = v1alpha1.SnapshotWaiting
			require.NoError(t, admin.Status().Update(t.Context(), s))
		}, "is not ready: wait until its condition Ready is True, and try again"},
		"failed": {func(t *testing.T, s *v1alpha1.ApplicationSnapshot) {
			s.Status.Phase = v1alpha1.SnapshotFailed
			require.NoError(t, admin.Status().Update(t.Context(), s))
		}, "has failed: name another one"},
		"being deleted": {func(t *testing.T, s *v1alpha1.ApplicationSnapshot) {
			s.Finalizers = []string{"example.com/hold"}
			require.NoError(t, admin.Update(t.Context(), s))
			require.NoError(t, admin.Delete(t.Context(), s))
			t.Cleanup(func() { s.Finalizers = nil; _ = admin.Update(afterwards(t), s) })
		}, "is being deleted: name another one"},
		"bound to nothing": {func(t *testing.T, s *v1alpha1.ApplicationSnapshot) {
			s.Status.BoundSnapshotContentName = "never-was"
			require.NoError(t, admin.Status().Update(t.Context(), s))
		}, `is not bound to its content "never-was"`},
		"bound to that of others": {func(t *testing.T, s *v1alpha1.ApplicationSnapshot) {
			others := readySnapshot(t, admin, c.Namespace(t), "services")
			s.Status.BoundSnapshotContentName = others.Status.BoundSnapshotContentName
			require.NoError(t, admin.Status().Update(t.Context(), s))
		}, "is not bound to its content"},
		"bound to that of its predecessor": {func(t *testing.T, s *v1alpha1.ApplicationSnapshot) {
			content := &v1alpha1.ApplicationSnapshotContent{ObjectMeta: metav1.ObjectMeta{GenerateName: "predecessor-"},
				Spec: v1alpha1.ApplicationSnapshotContentSpec{SnapshotClassName: "mongo",
					SnapshotRef: &v1alpha1.NamespacedReference{Namespace: s.Namespace, Name: s.Name, UID: "another"}}}
			require.NoError(t, admin.Create(t.Context(), content))
			s.Status.BoundSnapshotContentName = content.Name
			require.NoError(t, admin.Status().Update(t.Context(), s))
		}, "is not bound to its content"},
	} {
		t.Run(name, func(t *testing.T) {
			ns := c.Namespace(t)
			tc.change(t, readySnapshot(t, admin, ns, "services"))
			for _, obj := range []client.Object{newRestore(ns, ""), newRollback(ns, "mongo")} {
				err := admin.Create(t.Context(), obj)
				require.True(t, apierrors.IsInvalid(err), "%T: %v", obj, err)
				assert.ErrorContains(t, err, tc.message, "%T", obj)
			}
		})
	}
}

// C35: a content whose kinds were not noted, or too many, takes every right in the namespace.
func TestData_kindsThatNobodyKnows(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	many := make([]string, 101)
	for i := range many {
		many[i] = "services." + string(rune('a'+i%26)) + string(rune('a'+i/26)) + ".example.com"
	}
	for name, kinds := range map[string][]string{"none": nil, "too many": many, "of Waybill": {"gitsyncs." + v1alpha1.Group}} {
		t.Run(name, func(t *testing.T) {
			ns := c.Namespace(t)
			readySnapshot(t, admin, ns, kinds...)
			gitSyncs := on(v1alpha1.Group, "gitsyncs", "list")
			err := c.with(t, ns, mayRestore(), gitSyncs).Create(t.Context(), newRestore(ns, ""))
			require.True(t, apierrors.IsForbidden(err), "%v", err)
			assert.ErrorContains(t, err, `may not * *.* in namespace "`+ns+`"`)
			require.NoError(t, c.with(t, ns, []permission{in("*", "*", "*")}).Create(t.Context(), newRestore(ns, "")))
		})
	}
}

// C35: who restores from the snapshot of an application that others have is asked for the kinds in it,
// all of them, and the answer stays readable.
func TestData_namesWhatIsMissing(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	ns := c.Namespace(t)
	readySnapshot(t, admin, ns, "configmaps", "secrets", "services", "statefulsets.apps", "jobs.batch", "ingresses.networking.k8s.io", "serviceaccounts", "persistentvolumeclaims")
	err := c.with(t, ns, []permission{in(v1alpha1.Group, "applicationsnapshots", "restore")}).Create(t.Context(), newRestore(ns, ""))
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	assert.ErrorContains(t, err, `create services in namespace "`+ns+`" (the snapshot holds it); nor`)
	assert.Regexp(t, `; nor \d+ more`, err.Error())
}

// C20, C35: rights are asked for when something is done with them: not again for tags, nor for what is
// over; but a life that is shortened deletes.
func TestData_updatesOfSnapshots(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	ns := c.Namespace(t)
	s := newSnapshot(ns, class(t, admin, withHooks).Name)
	require.NoError(t, admin.Create(t.Context(), s))
	user := c.user(t, ns, rule(v1alpha1.Group, []string{"applicationsnapshots"}, "get", "update"))
	s.Spec.Tags = map[string]string{"version": "4.0"}
	require.NoError(t, user.Update(t.Context(), s), "tags")
	s.Spec.TTL = metav1.Duration{Duration: time.Second}
	err := user.Update(t.Context(), s)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	assert.ErrorContains(t, err, `delete applicationsnapshots.apps.waybill.dev "monday"`)
	require.NoError(t, c.user(t, ns, rule(v1alpha1.Group, []string{"applicationsnapshots"}, "get", "update", "delete")).Update(t.Context(), s))
}

// C35, S53: a class that is missing is said at once, to those who may do whatever it will say.
func TestData_classesThatAreMissing(t *testing.T) {
	c := admission(t)
	ns := c.Namespace(t)
	admin, warned := c.admin(t)
	require.NoError(t, admin.Create(t.Context(), newSnapshot(ns, "never-was")))
	assert.Equal(t, []string{`ApplicationSnapshotClass "never-was" does not exist: no snapshot is taken without it`}, warned.take())

	readySnapshot(t, admin, c.Namespace(t), "services")
	other := c.Namespace(t)
	readySnapshot(t, admin, other, "services")
	warned.take()
	app := newRestore(other, "")
	app.Spec.ApplicationClassName = "never-was"
	require.NoError(t, admin.Create(t.Context(), app))
	assert.Equal(t, []string{`StatefulApplicationClass "never-was" does not exist: nothing is restored without it`}, warned.take())
}

// S75, C35: a content that names a snapshot is bound by that one, without further rights, and by no
// other.
func TestData_bindingWhatAnAdministratorHasNamed(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	ns, other := c.Namespace(t), c.Namespace(t)
	content := &v1alpha1.ApplicationSnapshotContent{ObjectMeta: metav1.ObjectMeta{GenerateName: "static-"},
		Spec: v1alpha1.ApplicationSnapshotContentSpec{SnapshotClassName: "mongo", SnapshotRef: &v1alpha1.NamespacedReference{Namespace: ns, Name: "monday"}}}
	require.NoError(t, admin.Create(t.Context(), content))
	require.NoError(t, c.with(t, ns).Create(t.Context(), newBound(ns, "mongo", content.Name)))

	err := c.with(t, other).Create(t.Context(), newBound(other, "mongo", content.Name))
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	assert.ErrorContains(t, err, `use applicationsnapshotcontents.apps.waybill.dev "`+content.Name+`" (spec.snapshotContentName gives the namespace what is in it)`)
	renamed := newBound(ns, "mongo", content.Name)
	renamed.Name = "tuesday"
	require.True(t, apierrors.IsForbidden(c.with(t, ns).Create(t.Context(), renamed)), "another of the namespace")
}

// C22, C35, C64: who decides on a rollback has the rights that the decision takes, no matter who created it.
func TestData_decisionsOnRollbacks(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	ns := c.Namespace(t)
	readySnapshot(t, admin, ns, "services")
	rollback := newRollback(ns, "mongo")
	require.NoError(t, admin.Create(t.Context(), rollback))
	claims := on("", "persistentvolumeclaims", "create", "update", "delete")
	nobody, ofClaims, ofAll := c.with(t, ns), c.with(t, ns, claims), c.with(t, ns, mayRollBack())
	no := false
	for name, tc := range map[string]struct {
		edit    func(*v1alpha1.ApplicationRollbackSpec)
		allowed client.Client
		refused client.Client
		message string
	}{
		"confirmed": {func(s *v1alpha1.ApplicationRollbackSpec) { s.Decision = v1alpha1.RollbackConfirmed }, ofClaims, nobody, "delete persistentvolumeclaims"},
		"released":  {func(s *v1alpha1.ApplicationRollbackSpec) { s.Hold = &no }, ofClaims, nobody, "update persistentvolumeclaims"},
		"sooner":    {func(s *v1alpha1.ApplicationRollbackSpec) { s.UndoPeriod = &metav1.Duration{} }, ofClaims, nobody, "delete persistentvolumeclaims"},
		"undone":    {func(s *v1alpha1.ApplicationRollbackSpec) { s.Decision = v1alpha1.RollbackUndone }, ofAll, ofClaims, "update services"},
	} {
		t.Run(name, func(t *testing.T) {
			changed := rollback.DeepCopy()
			tc.edit(&changed.Spec)
			err := tc.refused.Update(t.Context(), changed.DeepCopy(), client.DryRunAll)
			require.True(t, apierrors.IsForbidden(err), "%v", err)
			assert.ErrorContains(t, err, tc.message)
			require.NoError(t, tc.allowed.Update(t.Context(), changed, client.DryRunAll))
		})
	}
	rollback.Labels = map[string]string{"a": "b"}
	require.NoError(t, nobody.Update(t.Context(), rollback), "metadata")

	require.NoError(t, admin.Delete(t.Context(), &v1alpha1.ApplicationSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "monday"}}))
	rollback.Spec.Decision = v1alpha1.RollbackUndone
	err := ofAll.Update(t.Context(), rollback)
	require.True(t, apierrors.IsForbidden(err), "no snapshot says what it touches: %v", err)
	assert.ErrorContains(t, err, "may not * *.*")
}

// C35, C64: who deletes a rollback that is completed deletes the volumes of before, as who confirms it.
func TestData_deletionsOfRollbacks(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	ns := c.Namespace(t)
	readySnapshot(t, admin, ns, "services")
	without, ofClaims := c.with(t, ns), c.with(t, ns, on("", "persistentvolumeclaims", "create", "update", "delete"))
	for phase, confirms := range map[v1alpha1.RollbackPhase]bool{
		v1alpha1.RollbackPending: false, v1alpha1.RollbackChecking: false, v1alpha1.RollbackCompleted: true,
		v1alpha1.RollbackReverted: false, v1alpha1.RollbackFinal: false, v1alpha1.RollbackFailed: false,
	} {
		rollback := newRollback(ns, "mongo")
		rollback.Name = "back-" + strings.ToLower(string(phase))
		require.NoError(t, admin.Create(t.Context(), rollback))
		was := rollback.DeepCopy()
		rollback.Status.Phase = phase
		require.NoError(t, admin.Status().Patch(t.Context(), rollback, client.MergeFrom(was)))
		err := without.Delete(t.Context(), rollback, client.DryRunAll)
		if !confirms {
			require.NoError(t, err, phase)
			continue
		}
		require.True(t, apierrors.IsForbidden(err), "%s: %v", phase, err)
		assert.ErrorContains(t, err, "delete persistentvolumeclaims")
		require.NoError(t, ofClaims.Delete(t.Context(), rollback, client.DryRunAll), phase)
	}
}

// C21, C35: who may do everything in a namespace reads no content, and so not where definitions are
// stored, and writes neither contents nor classes.
func TestData_rightsOfTenantsEndAtTheirNamespace(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	ns := c.Namespace(t)
	s := readySnapshot(t, admin, ns, "services")
	tenant := c.user(t, ns, rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}})
	content := &v1alpha1.ApplicationSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: s.Status.BoundSnapshotContentName}}
	require.True(t, apierrors.IsForbidden(tenant.Get(t.Context(), client.ObjectKeyFromObject(content), content)), "its handle")
	require.True(t, apierrors.IsForbidden(tenant.Create(t.Context(), dataObject(t, snapshotContent, "", `{}`))))
	require.True(t, apierrors.IsForbidden(tenant.Create(t.Context(), dataObject(t, snapshotClass, "", `{}`))))
	require.True(t, apierrors.IsForbidden(tenant.List(t.Context(), &corev1.SecretList{}, client.InNamespace(v1alpha1.DefaultSystemNamespace))))
	require.NoError(t, tenant.Create(t.Context(), newRestore(ns, "")), "everything in the own one")
}
