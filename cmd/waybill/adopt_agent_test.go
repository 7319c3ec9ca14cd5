package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	applicationcontroller "waybill.dev/waybill/sync/controllers/application"
	"waybill.dev/waybill/test/env"
	testhub "waybill.dev/waybill/test/hub"
)

// withAgent returns a cluster in which the Application controller runs until the end of the test.
func withAgent(t *testing.T) *env.Cluster {
	t.Helper()
	cluster := env.Shared(t, env.Options{Name: "agent", NoControllers: true, CRDs: []string{"../../charts/waybill/crds"}})
	process := testhub.Start(t, cluster, func(ctx context.Context, mgr ctrl.Manager, s testhub.Shared) error {
		r := &applicationcontroller.Reconciler{
			Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder("application"), Cluster: s.Clusters.Local(),
		}
		return r.SetupWithManager(ctx, mgr)
	})
	t.Cleanup(process.Stop)
	return cluster
}

// far returns a kubeconfig of the cluster for a user whose requests take a while.
func far(t *testing.T, cluster *env.Cluster) string {
	t.Helper()
	gate, err := env.NewGate(cluster.Address())
	require.NoError(t, err)
	t.Cleanup(gate.Close)
	gate.Slow(20 * time.Millisecond)
	config, err := cluster.AddUser("far", "system:masters")
	require.NoError(t, err)
	return kubeconfigFile(t, env.Via(gate, config))
}

// A89: the Application controller annotates the components of a new Application too, and is faster
// than a user who is far away. Both together bring about what was wanted.
func TestAdopt_besideTheController(t *testing.T) {
	cluster := withAgent(t)
	c, namespace := clientOf(t, cluster), cluster.Namespace(t)
	other := application(namespace, "other", "other")
	other.Spec.Components = []v1alpha1.ApplicationComponent{{Kind: "ConfigMap", Name: "other"}}
	require.NoError(t, c.Create(t.Context(), other), "its status is the controller's")
	create(t, c, labelled(configMap(namespace, "other"), "other"))
	require.Eventually(t, func() bool { return annotationOf(t, c, namespace, "other") == "other" }, limit, often, "ConfigMaps are watched")
	const count = 200
	for i := range count {
		create(t, c, labelled(configMap(namespace, fmt.Sprintf("settings-%03d", i)), "shop"))
	}

	got := waybillWith(t, "", "adopt", "shop", "-n", namespace, "-l", "app=shop", "--kind", "ConfigMap", "--yes", "--kubeconfig", far(t, cluster))
	assert.Equal(t, 0, got.code)
	assert.Empty(t, got.errOut)
	assert.Contains(t, got.out, fmt.Sprintf("\n%d objects annotated\n", count))
	app := adopted(t, c, namespace, "shop")
	require.Eventually(t, func() bool {
		list := &corev1.ConfigMapList{}
		require.NoError(t, c.List(t.Context(), list, client.InNamespace(namespace), client.MatchingLabels{"app": "shop"}))
		owned := 0
		for i := range list.Items {
			require.Equal(t, "shop", list.Items[i].Annotations[v1alpha1.ApplicationAnnotation])
			if refs := list.Items[i].OwnerReferences; len(refs) == 1 && refs[0].UID == app.UID {
				owned++
			}
		}
		return owned == count
	}, limit, often)
}

// A90: the controller writes the Application's status while the user is asked. That is no user's
// change.
func TestAdopt_whileTheStatusIsWritten(t *testing.T) {
	cluster := user(t)
	c, namespace := shop(t, cluster)
	create(t, c, application(namespace, "shop", "shop"))
	got := adoptWhile(t, cluster.KubeconfigFile(), namespace, func() {
		app := adopted(t, c, namespace, "shop")
		app.Finalizers = []string{v1alpha1.OwnershipFinalizer}
		require.NoError(t, c.Update(t.Context(), app))
		t.Cleanup(func() { unhold(t, c, namespace, "shop") })
		app.Status.ComponentsReady = "0/1"
		require.NoError(t, c.Status().Update(t.Context(), app))
	})
	require.Equal(t, 0, got.code, got.errOut)
	assert.Equal(t, "Go on? (y/N) ", got.errOut)
	app := adopted(t, c, namespace, "shop")
	assert.Len(t, app.Spec.Components, 1)
	assert.Equal(t, "0/1", app.Status.ComponentsReady, "and stays")
	assert.Equal(t, []string{v1alpha1.OwnershipFinalizer}, app.Finalizers, "and so do the finalizers")
	assert.Equal(t, "shop", annotationOf(t, c, namespace, "settings"))

	got = adoptWhile(t, cluster.KubeconfigFile(), namespace, func() {
		create(t, c, labelled(configMap(namespace, "more"), "shop"))
	})
	require.Equal(t, 0, got.code, got.errOut)
	for reason, edit := range map[string]func(*v1alpha1.Application){
		"labels":      func(app *v1alpha1.Application) { metav1.SetMetaDataLabel(&app.ObjectMeta, "a", "b") },
		"annotations": func(app *v1alpha1.Application) { metav1.SetMetaDataAnnotation(&app.ObjectMeta, "a", "b") },
		"spec":        func(app *v1alpha1.Application) { app.Spec.Description = "of somebody else" },
	} {
		create(t, c, labelled(configMap(namespace, "more-"+reason), "shop"))
		got = adoptWhile(t, cluster.KubeconfigFile(), namespace, func() {
			app := adopted(t, c, namespace, "shop")
			edit(app)
			require.NoError(t, c.Update(t.Context(), app))
		})
		assert.Equal(t, 2, got.code, reason)
		assert.Contains(t, got.errOut, "it has been modified meanwhile; nothing was written", reason)
	}
}

// unhold removes the finalizers of an Application, so that it can go.
func unhold(t *testing.T, c client.Client, namespace, name string) {
	t.Helper()
	app := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	ctx, cancel := context.WithTimeout(context.Background(), limit) // the test's own has ended
	defer cancel()
	require.NoError(t, client.IgnoreNotFound(c.Patch(ctx, app, patch)))
}
