package applicationinstallation_test

import (
	"slices"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/action"
	helmrelease "helm.sh/helm/v3/pkg/release"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// alter does to the record of a revision of the release `web` what any user may do who may write
// Secrets in its namespace. change is given a manifest that makes its writer the administrator
// of the cluster.
func (w *world) alter(revision int, change func(r *helmrelease.Release, binding string)) {
	w.T.Helper()
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig, flags.Namespace = ptr.To(w.Cluster.KubeconfigFile()), &w.Namespace
	helm := &action.Configuration{}
	require.NoError(w.T, helm.Init(flags, w.Namespace, "secret", func(string, ...any) {}))
	record, err := helm.Releases.Get("web", revision)
	require.NoError(w.T, err)
	change(record, "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: "+w.Namespace+"}\n"+
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\n"+
		"subjects: [{kind: ServiceAccount, name: default, namespace: "+w.Namespace+"}]\n")
	require.NoError(w.T, helm.Releases.Update(record))
}

func addToManifest(r *helmrelease.Release, binding string) { r.Manifest += "\n---\n" + binding }

// assertNotApplied says that nothing was made of what was written into a record, and that
// it was reported.
func (w *world) assertNotApplied(note string) {
	w.T.Helper()
	assert.False(w.T, w.ExistsIn("", &rbacv1.ClusterRoleBinding{}, w.Namespace), "what others wrote into the record was applied")
	told := &eventsv1.EventList{}
	assert.True(w.T, w.Eventually(func() bool {
		require.NoError(w.T, w.Client.List(w.T.Context(), told, inNamespace(w)))
		return slices.ContainsFunc(told.Items, func(e eventsv1.Event) bool {
			return e.Reason == v1alpha1.ReleaseAlteredReason && e.Type == corev1.EventTypeWarning && e.Note == note
		})
	}), "no event says that %s", note)
}

// K53, C34, C35: a user who may write into the target namespace gains nothing by the record of Helm,
// whose hooks would be run with Waybill's rights; nor does the installation stay for it.
func TestInstallation_runsNoHooksThatOthersWrote(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.define(nil)
	inst := hub.AwaitReady(w.World, w.install(nil))
	w.alter(1, func(r *helmrelease.Release, binding string) {
		r.Manifest = ""
		r.Hooks = append(r.Hooks, &helmrelease.Hook{
			Name: "theirs", Kind: "ClusterRoleBinding", Manifest: binding, Events: []helmrelease.HookEvent{helmrelease.HookPreDelete},
		})
	})
	require.NoError(t, w.Client.Delete(t.Context(), inst))
	w.AwaitGone(&v1alpha1.ApplicationInstallation{}, "web")
	assert.False(t, w.Exists(&appsv1.Deployment{}, "web"))
	assert.Empty(t, w.releases("web"))
	w.assertNotApplied("Helm's record of revision 1 of release " + w.Namespace + "/web is not as Waybill noted it: its delete hooks were not run")
}

// K3, C53: what is corrected is corrected by the chart.
func TestInstallation_makesAnAlteredReleaseAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.define(nil)
	inst := hub.AwaitReady(w.World, w.install(nil))
	w.alter(1, addToManifest)
	hub.Change(w.World, w.deployment("web"), func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](7) })
	hub.Await(w.World, inst, "another revision is made", func(i *v1alpha1.ApplicationInstallation) bool {
		return i.Status.Release.Revision == 2 && conditions.IsReady(i)
	})
	assert.EqualValues(t, 2, *w.deployment("web").Spec.Replicas)
	assert.Nil(t, inst.Status.Release.Fallback)
	w.assertNotApplied("Helm's record of revision 1 of release " + w.Namespace + "/web is not as Waybill noted it: it was not used, and another revision was made from the chart")

	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { i.Spec.ApplicationRef.Version = "1.1.0" })
	hub.AwaitReady(w.World, inst)
	assert.EqualValues(t, 3, inst.Status.Release.Revision)
	require.NotNil(t, inst.Status.Release.Fallback)
	assert.EqualValues(t, 2, inst.Status.Release.Fallback.Revision)
}

// K47: what is not healthy is not exchanged for what others wrote. That the upgrade did not start
// from it was reported already; the event counts.
func TestInstallation_doesNotRollBackToAnAlteredRelease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.define(nil)
	inst := hub.AwaitReady(w.World, w.install(func(s *v1alpha1.ApplicationInstallationSpec) {
		s.Values = values(t, map[string]any{"replicas": 1, "hook": map[string]any{"enabled": false}})
	}))
	w.alter(1, addToManifest)
	w.Create(&corev1.ResourceQuota{ObjectMeta: objectMeta("few"), Spec: corev1.ResourceQuotaSpec{
		Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")},
	}})
	w.AwaitPodRefused("exceeded quota: few")
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) {
		i.Spec.Values = values(t, map[string]any{"replicas": 2, "hook": map[string]any{"enabled": false}})
		i.Spec.DeployOptions = waiting(time.Hour, true)
	})
	w.awaitAwaited(inst, 2)
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { i.Spec.DeployOptions = waiting(short, true) })
	message := hub.AwaitReason(w.World, inst, v1alpha1.ReleaseAlteredReason)
	assert.Contains(t, message, "not rolled back: the record of revision 1 of release "+w.Namespace+"/web differs from what Waybill recorded; change the installation to try again")
	assert.True(t, conditions.IsStalled(inst))
	assert.Equal(t, "failed", inst.Status.Release.Status)
	assert.EqualValues(t, 2, *w.deployment("web").Spec.Replicas, "what is installed stays")

	// A change by others is no reason to try again what was given up.
	hub.Change(w.World, w.deployment("web"), func(d *appsv1.Deployment) { d.Spec.Paused = true })
	w.settle(inst)
	hub.Change(w.World, w.deployment("web"), func(d *appsv1.Deployment) { d.Spec.Paused = false })
	w.settle(inst)
	assert.True(t, conditions.IsStalled(inst))
	assert.EqualValues(t, 2, inst.Status.Release.Revision)
	w.assertNotApplied("Helm's record of revision 1 of release " + w.Namespace + "/web is not as Waybill noted it: it was not used, and another revision was made from the chart")
}
