package application_test

import (
	"context"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/controllers/applicationinstallation"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

// installer runs the controller of installations.
func installer(ctx context.Context, mgr ctrl.Manager, s hub.Shared) error {
	r := &applicationinstallation.Reconciler{
		Hub: mgr.GetClient(), Clusters: s.Clusters, Secrets: s.Secrets, HubID: s.HubID, Git: s.Git, Charts: s.Charts,
		SystemNamespace: hub.SystemNamespace,
	}
	if err := r.SetupWithManager(ctx, mgr); err != nil {
		return err
	}
	s.Clusters.Ensure(types.NamespacedName{Namespace: hub.SystemNamespace, Name: "local"}, "local", nil)
	return nil
}

// installWeb installs the example chart `web`, by a controller of installations that ends with the test, and waits until it is Ready.
func (w *world) installWeb() *v1alpha1.ApplicationInstallation {
	w.T.Helper()
	process := hub.Start(w.T, w.Cluster, installer)
	w.T.Cleanup(process.Stop)
	repo, err := env.StartHelmRepo(env.Access{})
	require.NoError(w.T, err)
	w.T.Cleanup(repo.Stop)
	_, err = repo.Push("../../../examples/charts/web")
	require.NoError(w.T, err)
	w.Create(&v1alpha1.ApplicationDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: w.Namespace},
		Spec: v1alpha1.ApplicationDefinitionSpec{Versions: []v1alpha1.ApplicationVersion{{
			Version: "1.0.0", Template: &v1alpha1.ApplicationTemplate{Source: v1alpha1.ApplicationSource{Helm: &v1alpha1.HelmSource{
				URL: repo.URL(), ChartName: "web", ChartVersion: "1.1.0",
			}}},
		}}},
	})
	inst := &v1alpha1.ApplicationInstallation{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       v1alpha1.ApplicationInstallationSpec{ApplicationRef: v1alpha1.ApplicationReference{Name: w.Namespace, Version: "1.0.0"}},
	}
	w.Create(inst)
	return hub.AwaitReady(w.World, inst)
}

// C8, C43, C52, C55: the Application of an installation observes what Helm made; its objects
// are marked, without a drift; and the installation is Ready when the Application's components
// are.
func TestInstallation_observesWhatHelmMade(t *testing.T) {
	w := newWorld(t)
	inst := w.installWeb()

	app := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "web"}}
	hub.AwaitReady(w.World, app)
	assert.Equal(t, v1alpha1.OwnershipObserve, app.Spec.Ownership)
	assert.Contains(t, app.Status.Installed, "Deployment.apps/web")
	assert.Empty(t, app.Finalizers)
	web := &appsv1.Deployment{}
	require.True(t, w.Exists(web, "web"))
	assert.Equal(t, "web", web.Annotations[v1alpha1.ApplicationAnnotation])
	assert.Empty(t, web.OwnerReferences)

	w.settle(app)
	version := web.ResourceVersion
	hub.Reconcile(w.World, inst)
	hub.AwaitReady(w.World, inst)
	require.True(t, w.Exists(web, "web"))
	assert.Equal(t, version, web.ResourceVersion, "what was marked is not corrected")

	w.delete(inst)
	w.AwaitGone(&appsv1.Deployment{}, "web")
	w.AwaitGone(&v1alpha1.Application{}, "web")
}

// C43: why the Pods of a workload do not run is in Ready of the Application, and of the installation that it is of.
func TestInstallation_saysWhyItsPodsDoNotRun(t *testing.T) {
	w := newWorld(t)
	inst := w.installWeb()
	list := &corev1.PodList{}
	require.True(t, w.Eventually(func() bool {
		require.NoError(t, w.Client.List(t.Context(), list, client.InNamespace(w.Namespace), client.HasLabels{"pod-template-hash"}))
		return len(list.Items) > 0 && len(list.Items[0].Status.ContainerStatuses) == 1
	}), "it has no Pod")
	pod, before := &list.Items[0], list.Items[0].DeepCopy()
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady || c.Type == corev1.ContainersReady {
			c.Status, c.Reason = corev1.ConditionFalse, "ContainersNotReady"
		}
	}
	container := &pod.Status.ContainerStatuses[0]
	container.Ready, container.Image = false, "nginx:nope"
	container.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "not found"}}
	require.NoError(t, w.Client.Status().Patch(t.Context(), pod, client.MergeFrom(before)))

	why := "Pod " + pod.Name + `: container "nginx": ImagePullBackOff: image "nginx:nope"`
	says := func(o conditions.Getter) bool {
		return strings.Contains(conditions.GetMessage(o, v1alpha1.ReadyCondition), why)
	}
	app := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "web"}}
	hub.Await(w.World, app, "the Application does not say why", func(a *v1alpha1.Application) bool { return says(a) })
	hub.Await(w.World, inst, "the installation does not say why", func(i *v1alpha1.ApplicationInstallation) bool {
		return says(i) && !conditions.IsReady(i)
	})
	w.delete(inst)
}
