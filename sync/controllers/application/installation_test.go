package application_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

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

// C8, C43, C52, C55: the Application of an installation observes what Helm made; its objects
// are marked, without a drift; and the installation is Ready when the Application's components
// are.
func TestInstallation_observesWhatHelmMade(t *testing.T) {
	w := newWorld(t)
	process := hub.Start(t, w.Cluster, installer)
	t.Cleanup(process.Stop)
	repo, err := env.StartHelmRepo(env.Access{})
	require.NoError(t, err)
	t.Cleanup(repo.Stop)
	_, err = repo.Push("../../../examples/charts/web")
	require.NoError(t, err)
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
	hub.AwaitReady(w.World, inst)

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
