package release_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	helmrelease "helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/release"
	"waybill.dev/waybill/sync/manifest"
)

// alter does to a record what any user may do who may write Secrets in its namespace.
func (w *world) alter(name string, revision int, change func(*helmrelease.Release)) {
	w.Helper()
	records := w.helm().Releases
	record, err := records.Get(name, revision)
	require.NoError(w, err)
	change(record)
	require.NoError(w, records.Update(record))
}

// binding is a manifest that makes its writer the administrator of the cluster, named after the namespace.
func (w *world) binding() string {
	return "\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: " + w.namespace + "}\n" +
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\n" +
		"subjects: [{kind: ServiceAccount, name: default, namespace: " + w.namespace + "}]\n"
}

func (w *world) addBinding(r *helmrelease.Release) { r.Manifest += w.binding() }

func (w *world) assertNoBinding() {
	w.Helper()
	_, err := w.client.RbacV1().ClusterRoleBindings().Get(w.Context(), w.namespace, metav1.GetOptions{})
	assert.True(w, apierrors.IsNotFound(err), "what others wrote into the record was applied")
}

// bystander makes a ConfigMap that no release of ours has anything to do with; another's by the name of ours may have.
func (w *world) bystander() {
	w.Helper()
	_, err := w.client.CoreV1().ConfigMaps(w.namespace).Create(w.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "bystander", Annotations: map[string]string{"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": w.namespace},
	}}, metav1.CreateOptions{})
	require.NoError(w, err)
}

// K53, C35: hooks that a user wrote into the record are not run; the release goes all the same.
func TestUninstall_runsNoHooksOfAnAlteredRecord(t *testing.T) {
	w := newWorld(t)
	w.bystander()
	w.ensure(w.desired("hooked", values{"events": "pre-delete"}))
	w.alter("hooked", 1, func(r *helmrelease.Release) {
		r.Hooks = append(r.Hooks,
			&helmrelease.Hook{Name: "theirs", Kind: "ClusterRoleBinding", Manifest: w.binding(), Events: []helmrelease.HookEvent{helmrelease.HookPreDelete}},
			&helmrelease.Hook{Name: "bystander", Kind: "ConfigMap", Manifest: configMap("bystander", "a"), Events: []helmrelease.HookEvent{helmrelease.HookPostDelete}},
		)
	})
	left, err := w.engine.Uninstall(t.Context(), w.target, w.identity("hooked"), release.Options{}, nil)
	require.NoError(t, err)
	w.assertNoBinding()
	assert.Equal(t, []int{1}, left.Altered)
	assert.Len(t, left.Objects, 1)
	_, err = w.configMap("bystander")
	require.NoError(t, err)
	_, err = w.configMap("hooked")
	assert.True(t, apierrors.IsNotFound(err))
	_, err = w.hookJob()
	assert.True(t, apierrors.IsNotFound(err), "which hooks are the chart's is not known")
	assert.Empty(t, w.revisions("hooked"))
}

// The hooks of a record that Waybill wrote are run, also when they have run before.
func TestUninstall_runsHooks(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired("hooked", values{"events": "post-install,pre-delete"}))
	before, err := w.hookJob()
	require.NoError(t, err)
	left, err := w.engine.Uninstall(t.Context(), w.target, w.identity("hooked"), release.Options{}, nil)
	require.NoError(t, err)
	assert.Empty(t, left.Altered)
	after, err := w.hookJob()
	require.NoError(t, err)
	assert.NotEqual(t, before, after)
}

// K53: `helm test` runs some hooks and puts the others before them; the record is Waybill's all the same.
func TestUninstall_runsHooksAfterAHelmTest(t *testing.T) {
	w := newWorld(t)
	d := w.desired("hooked", values{"events": "pre-delete,post-delete"})
	check := "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: check, annotations: {helm.sh/hook: test}}\n"
	d.Chart.Templates = append(d.Chart.Templates, &chart.File{Name: "templates/check.yaml", Data: []byte(check)})
	w.ensure(d)
	order := func() (kinds []string) {
		record, err := w.helm().Releases.Get("hooked", 1)
		require.NoError(t, err)
		for _, h := range record.Hooks {
			kinds = append(kinds, h.Kind)
		}
		return kinds
	}
	before := order()
	test := action.NewReleaseTesting(w.helm())
	test.Filters[action.IncludeNameFilter] = []string{"check"}
	_, err := test.Run("hooked")
	require.NoError(t, err)
	require.NotEqual(t, before, order(), "else this tests nothing")

	again := w.ensure(d)
	assert.Equal(t, release.ActionNone, again.Action)
	assert.Empty(t, again.Altered)
	left, err := w.engine.Uninstall(t.Context(), w.target, w.identity("hooked"), release.Options{}, nil)
	require.NoError(t, err)
	assert.Empty(t, left.Altered)
	_, err = w.hookJob()
	require.NoError(t, err, "its delete hook ran")
}

// C34: of what an altered record names, only what carries the marks of the release is deleted, hook or not.
func TestUninstall_deletesNothingElseThatAnAlteredRecordNames(t *testing.T) {
	w := newWorld(t)
	w.bystander()
	w.ensure(w.desired("web", values{"extra": true}))
	w.alter("web", 1, func(r *helmrelease.Release) {
		r.Manifest += "\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: bystander, annotations: {helm.sh/hook: pre-delete}}\n" +
			"---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: default}\n"
	})
	_, err := w.engine.Uninstall(t.Context(), w.target, w.identity("web"), release.Options{}, nil)
	require.NoError(t, err)
	_, err = w.configMap("bystander")
	require.NoError(t, err)
	_, err = w.client.CoreV1().ServiceAccounts(w.namespace).Get(t.Context(), "default", metav1.GetOptions{})
	require.NoError(t, err)
	_, err = w.configMap("web-extra")
	assert.True(t, apierrors.IsNotFound(err))
	assert.Empty(t, w.revisions("web"))
}

// K53, C34: what a record does not say any more, the caller has noted. What wants to be kept is kept, and others' objects stay.
func TestUninstall_goesByWhatTheCallerNoted(t *testing.T) {
	cases := map[string]func(*world){
		"RecordEmptied": func(w *world) { w.alter("web", 1, func(r *helmrelease.Release) { r.Manifest = "" }) },
		"RecordDamaged": func(w *world) { w.alter("web", 1, func(r *helmrelease.Release) { r.Manifest = "{{" }) },
		"RecordGone": func(w *world) {
			require.NoError(w, w.client.CoreV1().Secrets(w.namespace).Delete(w.Context(), "sh.helm.release.v1.web.v1", metav1.DeleteOptions{}))
		},
		"OwnerChanged": func(w *world) {
			w.label("sh.helm.release.v1.web.v1", map[string]string{v1alpha1.OwnerHashLabel: "them"})
		},
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.bystander()
			installed := w.ensure(w.desired("web", values{"extra": true, "keep": true})).Objects
			change(w)
			installed = append(installed, manifest.ID{Version: "v1", Kind: "ConfigMap", Namespace: w.namespace, Name: "bystander"},
				manifest.ID{Group: "example.com", Version: "v1", Kind: "Unknown", Name: "gone"})
			left, err := w.engine.Uninstall(t.Context(), w.target, w.identity("web"), release.Options{}, installed)
			require.NoError(t, err)
			assert.Len(t, left.Kept, 2)
			_, err = w.configMap("web")
			assert.True(t, apierrors.IsNotFound(err))
			_, err = w.configMap("web-extra")
			require.NoError(t, err)
			_, err = w.configMap("bystander")
			require.NoError(t, err)
		})
	}
}

// K47: a revision that a user altered is not gone back to, and nothing is uninstalled instead.
func TestRollback_doesNotGoBackToAnAlteredRecord(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired("web", values{"greeting": "one"}))
	w.ensure(w.desired("web", values{"greeting": "two"}))
	require.NotNil(t, w.known["web"].Fallback)
	assert.EqualValues(t, 1, w.known["web"].Fallback.Revision)
	w.alter("web", 1, w.addBinding)
	result, err := w.engine.Rollback(t.Context(), w.target, w.identity("web"), release.Options{}, release.Verdict{Why: "not healthy"})
	assert.Equal(t, release.ReasonAltered, release.ReasonOf(err))
	assert.Contains(t, err.Error(), "the record of revision 1 of release "+w.namespace+"/web differs from what Waybill recorded")
	w.assertNoBinding()
	assert.Equal(t, []string{"1 superseded", "2 failed"}, w.revisions("web"))
	assert.Equal(t, "failed", result.Release.Status)
	assert.Equal(t, []int{1}, result.Altered)
	config, err := w.configMap("web")
	require.NoError(t, err)
	assert.Equal(t, "two", config.Data["greeting"])
}

func TestRollback_ofAnAlteredRecord(t *testing.T) {
	w := newWorld(t)
	w.bystander()
	w.ensure(w.desired("web", values{"greeting": "one"}))
	w.ensure(w.desired("web", values{"greeting": "two", "extra": true}))
	w.alter("web", 2, func(r *helmrelease.Release) { r.Manifest += "\n---\n" + configMap("bystander", "a") })
	result, err := w.engine.Rollback(t.Context(), w.target, w.identity("web"), release.Options{}, release.Verdict{Why: "not healthy"})
	require.NoError(t, err)
	assert.EqualValues(t, 3, result.Release.Revision)
	assert.Equal(t, []int{2}, result.Altered)
	config, err := w.configMap("web")
	require.NoError(t, err)
	assert.Equal(t, "one", config.Data["greeting"])
	_, err = w.configMap("web-extra")
	assert.True(t, apierrors.IsNotFound(err), "what the altered revision had beyond it is gone")
	_, err = w.configMap("bystander")
	require.NoError(t, err)
}

func TestEnsure_atomicDoesNotGoBackToAnAlteredRecord(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired("web", nil))
	w.alter("web", 1, w.addBinding)
	d := w.desired("web", values{"broken": true})
	d.Options.Atomic = true
	_, err := w.try(t.Context(), d)
	assert.Equal(t, release.ReasonInvalidObject, release.ReasonOf(err), "the error stays that of the upgrade")
	assert.Contains(t, err.Error(), "could not be undone: the record of revision 1")
	w.assertNoBinding()
}

// K3, C53: nothing is corrected by a record that a user altered; the chart says what is wanted.
func TestCorrect_doesNotGoByAnAlteredRecord(t *testing.T) {
	w := newWorld(t)
	d := w.desired("web", nil)
	w.ensure(d)
	w.alter("web", 1, w.addBinding)
	_, err := w.engine.Correct(t.Context(), w.target, w.identity("web"), nil)
	assert.Equal(t, release.ReasonAltered, release.ReasonOf(err))

	result := w.ensure(d)
	assert.Equal(t, release.ActionUpgrade, result.Action)
	assert.Equal(t, []int{1}, result.Altered)
	assert.Len(t, result.Objects, 4)
	assert.Nil(t, result.Release.Fallback, "to which a rollback would not go")
	assert.Equal(t, []string{"1 superseded", "2 deployed"}, w.revisions("web"))
	w.assertNoBinding()

	again := w.ensure(d)
	assert.Equal(t, release.ActionNone, again.Action)
	assert.Empty(t, again.Altered)
	_, err = w.engine.Correct(t.Context(), w.target, w.identity("web"), nil)
	require.NoError(t, err)
}

// Nor are the hooks of an earlier revision those of what is installed.
func TestUninstall_runsNoHooksOfAnEarlierRecord(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired("hooked", values{"events": "pre-delete"}))
	w.ensure(w.desired("hooked", values{"events": "test"}))
	require.NoError(t, w.client.CoreV1().Secrets(w.namespace).Delete(t.Context(), "sh.helm.release.v1.hooked.v2", metav1.DeleteOptions{}))
	left, err := w.engine.Uninstall(t.Context(), w.target, w.identity("hooked"), release.Options{}, nil)
	require.NoError(t, err)
	assert.Equal(t, []int{1}, left.Altered)
	_, err = w.hookJob()
	assert.True(t, apierrors.IsNotFound(err))
}

// An earlier revision that is genuine is not what is wanted now.
func TestCorrect_doesNotGoByAnEarlierRecord(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired("web", values{"greeting": "one"}))
	w.ensure(w.desired("web", values{"greeting": "two"}))
	require.NoError(t, w.client.CoreV1().Secrets(w.namespace).Delete(t.Context(), "sh.helm.release.v1.web.v2", metav1.DeleteOptions{}))
	w.label("sh.helm.release.v1.web.v1", map[string]string{"status": "deployed"})
	_, err := w.engine.Correct(t.Context(), w.target, w.identity("web"), nil)
	assert.Equal(t, release.ReasonAltered, release.ReasonOf(err))
	config, err := w.configMap("web")
	require.NoError(t, err)
	assert.Equal(t, "two", config.Data["greeting"])
}

// K47: an altered record is no base to upgrade from. It says neither what others have set, nor what is to be deleted.
func TestEnsure_doesNotUpgradeFromAnAlteredRecord(t *testing.T) {
	w := newWorld(t)
	w.bystander()
	w.ensure(w.desired("web", values{"extra": true}))
	theirs := []byte(`{"metadata":{"labels":{"theirs":"kept"}}}`)
	_, err := w.client.CoreV1().ConfigMaps(w.namespace).Patch(t.Context(), "web", types.MergePatchType, theirs, metav1.PatchOptions{})
	require.NoError(t, err)
	w.alter("web", 1, func(r *helmrelease.Release) {
		r.Manifest += "\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, labels: {theirs: kept}}\n---\n" + configMap("bystander", "a")
		r.Namespace = metav1.NamespaceDefault
	})
	result := w.ensure(w.desired("web", values{"replicas": 2}))
	assert.Equal(t, w.namespace, result.Release.Namespace)
	assert.Equal(t, []int{1}, result.Altered)
	config, err := w.configMap("web")
	require.NoError(t, err)
	assert.Equal(t, "kept", config.Labels["theirs"])
	_, err = w.configMap("bystander")
	require.NoError(t, err)
	_, err = w.configMap("web-extra")
	assert.True(t, apierrors.IsNotFound(err), "what the release had, and is not wanted, goes by its marks")
}

// C41, C54: a revision that was made just before a crash, and never noted, is known by what it holds.
func TestEnsure_adoptsWhatACrashKeptFromBeingNoted(t *testing.T) {
	w := newWorld(t)
	first := w.desired("web", values{"extra": true})
	made := w.ensure(first)
	delete(w.known, "web")
	result := w.ensure(first)
	assert.Equal(t, release.ActionNone, result.Action)
	assert.True(t, result.Adopted)
	assert.Empty(t, result.Altered)
	assert.Equal(t, made.Release, result.Release)
	assert.Equal(t, made.Objects, result.Objects)
	assert.False(t, w.ensure(first).Adopted, "it is noted by now")

	before := w.known["web"]
	next := w.desired("web", values{"replicas": 2})
	made = w.ensure(next)
	w.known["web"] = before
	result = w.ensure(next)
	assert.True(t, result.Adopted)
	assert.Equal(t, made.Release, result.Release, "with what to go back to")
	assert.Equal(t, []string{"1 superseded", "2 deployed"}, w.revisions("web"))
}

// C35: who copies a record of what is wanted keeps nothing by it that is not wanted any more.
func TestEnsure_adoptsNoLeftovers(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.template(configMap("web", "a") + configMap("gone", "a")))
	left, err := w.configMap("gone")
	require.NoError(t, err)
	before := w.known["one"]
	next := w.template(configMap("web", "b"))
	w.ensure(next)
	left.ResourceVersion, left.UID = "", ""
	_, err = w.client.CoreV1().ConfigMaps(w.namespace).Create(t.Context(), left, metav1.CreateOptions{})
	require.NoError(t, err)
	w.known["one"] = before
	assert.True(t, w.ensure(next).Adopted)
	_, err = w.configMap("gone")
	assert.True(t, apierrors.IsNotFound(err))
}

// C54: nor is it accepted as what it says it is where that cannot be proved: it is made once more.
func TestEnsure_adoptsNothingThatItCannotProve(t *testing.T) {
	random := `{apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {key: {{ randAlphaNum 20 }}}}`
	for name, desired := range map[string]func(*world) release.Desired{
		"renders differently each time": func(w *world) release.Desired { return w.template(random) },
		"two revisions were not noted": func(w *world) release.Desired {
			w.ensure(w.template(configMap("web", "a")))
			return w.template(configMap("web", "b"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			d := desired(w)
			revision := w.ensure(d).Release.Revision
			delete(w.known, "one")
			result := w.ensure(d)
			assert.Equal(t, release.ActionUpgrade, result.Action)
			assert.Equal(t, revision+1, result.Release.Revision)
			assert.Contains(t, result.Altered, int(revision))
		})
	}
}

// C41, C54: a revision of a chart that cannot be rendered again just so is made once more, and then known.
func TestEnsure_recoversFromACrashBeforeTheReleaseWasNoted(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired("web", values{"extra": true}))
	before := w.known["web"]
	next := w.desired("web", values{"replicas": 2})
	w.ensure(next)
	w.alter("web", 2, func(r *helmrelease.Release) { r.Manifest += "\n# theirs\n" })
	w.known["web"] = before

	result := w.ensure(next)
	assert.Equal(t, release.ActionUpgrade, result.Action)
	assert.EqualValues(t, 3, result.Release.Revision)
	require.NotNil(t, result.Release.Fallback)
	assert.EqualValues(t, 1, result.Release.Fallback.Revision, "the last good one that is known")
	assert.Equal(t, release.ActionNone, w.ensure(next).Action)
	rolledBack, err := w.engine.Rollback(t.Context(), w.target, w.identity("web"), release.Options{}, release.Verdict{Why: "not healthy"})
	require.NoError(t, err)
	assert.EqualValues(t, 4, rolledBack.Release.Revision)
	_, err = w.configMap("web-extra")
	require.NoError(t, err)
}

// C34, C41: what an install made before a crash goes, though nothing of it was noted.
func TestUninstall_afterACrashBeforeTheReleaseWasNoted(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired("web", nil))
	delete(w.known, "web")
	left, err := w.engine.Uninstall(t.Context(), w.target, w.identity("web"), release.Options{}, nil)
	require.NoError(t, err)
	assert.Len(t, left.Objects, 4)
	assert.Empty(t, w.revisions("web"))
	_, err = w.configMap("web")
	assert.True(t, apierrors.IsNotFound(err))
}

// A record that is damaged holds nothing up.
func TestEnsure_makesADamagedReleaseAnew(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired("web", nil))
	patch := []byte(`{"data":{"release":"bm9uc2Vuc2U="}}`)
	_, err := w.client.CoreV1().Secrets(w.namespace).Patch(t.Context(), "sh.helm.release.v1.web.v1", types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(t, err)
	result := w.ensure(w.desired("web", values{"replicas": 2}))
	assert.Equal(t, []int{1}, result.Altered)
	assert.Equal(t, []string{"1 superseded", "2 deployed"}, w.revisions("web"))
}
