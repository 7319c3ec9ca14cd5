package applicationinstallation_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	helmrelease "helm.sh/helm/v3/pkg/release"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

// requestsOf are those of the controller in the namespace of the test while do runs, without watches.
func (w *world) requestsOf(do func()) []string {
	w.T.Helper()
	mark, err := w.Cluster.AuditMark(w.T.Context())
	require.NoError(w.T, err)
	do()
	requests, err := w.Cluster.Requests(w.T.Context(), mark, env.Calls, func(r env.Request) bool {
		return strings.Contains(r.User, hub.Identity) && r.Namespace == w.Namespace && r.Resource != "events"
	})
	require.NoError(w.T, err)
	var made []string
	for _, r := range requests {
		made = append(made, fmt.Sprintf("%s %s %s %s", r.Verb, r.Resource, r.Subresource, r.Name))
	}
	return made
}

// installMany creates installations, and waits until all are ready.
func (w *world) installMany(n int) []*v1alpha1.ApplicationInstallation {
	w.T.Helper()
	list := make([]*v1alpha1.ApplicationInstallation, n)
	for i := range list {
		list[i] = &v1alpha1.ApplicationInstallation{ObjectMeta: objectMeta(fmt.Sprintf("web-%d", i)), Spec: v1alpha1.ApplicationInstallationSpec{
			ApplicationRef: v1alpha1.ApplicationReference{Name: w.Namespace, Version: "1.0.0"},
		}}
		w.Create(list[i])
	}
	for _, inst := range list {
		hub.AwaitReady(w.World, inst)
	}
	return list
}

// C41: what has not changed since the process before costs one list for all releases of a namespace, and no write.
func TestInstallation_restartCostsOneListForANamespace(t *testing.T) {
	w := newWorld(t)
	w.define(nil)
	list := w.installMany(4)
	made := w.requestsOf(func() {
		engageAnew()
		for _, inst := range list {
			hub.Reconcile(w.World, inst)
		}
	})
	var others []string
	for _, r := range made {
		if !strings.HasPrefix(r, "patch applicationinstallations status") { // that reconcile-at was handled
			others = append(others, r)
		}
	}
	assert.Equal(t, []string{"list secrets  "}, others)
	assert.Len(t, made, 1+len(list))

	hub.Change(w.World, w.deployment("web-1"), func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](7) })
	require.True(t, w.Eventually(func() bool { return *w.deployment("web-1").Spec.Replicas == 2 }), "they are watched")
}

// K3, K53: what others changed while no process ran is found.
func TestInstallation_restartFindsWhatOthersChanged(t *testing.T) {
	w := newWorld(t)
	w.define(nil)
	inst := hub.AwaitReady(w.World, w.install(nil))
	require.NotEmpty(t, inst.Status.AppliedDigest)

	t.Run("object", func(t *testing.T) {
		stopDriving()
		hub.Change(w.World, w.deployment("web"), func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](7) })
		engageAnew()
		require.True(t, w.Eventually(func() bool { return *w.deployment("web").Spec.Replicas == 2 }))
	})
	t.Run("record", func(t *testing.T) {
		hub.Reconcile(w.World, inst)
		stopDriving()
		w.alter(1, addToManifest)
		engageAnew()
		hub.Await(w.World, inst, "another revision is made", func(i *v1alpha1.ApplicationInstallation) bool { return i.Status.Release.Revision == 2 })
		w.assertNotApplied("Helm's record of revision 1 of release " + w.Namespace + "/web is not as Waybill noted it: it was not used, and another revision was made from the chart")
	})
	t.Run("forged", func(t *testing.T) {
		hub.AwaitReady(w.World, inst)
		stopDriving()
		forged := &corev1.Secret{ObjectMeta: objectMeta("sh.helm.release.v1.web.v3"), Type: "helm.sh/release.v1", Data: map[string][]byte{"release": []byte("x")}}
		forged.Labels = w.releases("web")[1].Labels
		forged.Labels["version"], forged.Labels["status"] = "3", string(helmrelease.StatusDeployed)
		w.Create(forged)
		engageAnew()
		hub.Await(w.World, inst, "another revision is made", func(i *v1alpha1.ApplicationInstallation) bool { return i.Status.Release.Revision == 4 })
	})
}

// stopDriving lets the controller go from the cluster, as at the end of its process.
func stopDriving() { shared.process.Clusters.Remove(local) }
