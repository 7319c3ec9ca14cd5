package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/program"
)

// C44: a process whose API server was restored from a snapshot would hear of nothing until that has caught
// up with what the process has seen. It ends, to be started again.
func TestProgram_endsWhereItsAPIServerWasRestored(t *testing.T) {
	bin, err := program.Build(t.Context(), program.Sync)
	require.NoError(t, err)
	cluster := env.Start(t, env.Options{Name: "restored", Own: true, NoControllers: true, CRDs: []string{"../../charts/waybill/crds"}})
	process, err := program.Start(t.Context(), program.Options{
		Name: program.Sync, As: "restored", Bin: bin, Kubeconfig: cluster.KubeconfigFile(), Args: []string{"--controllers=agent"},
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = process.Kill() })
	assertReconciles(t, cluster, "before")
	require.NoError(t, cluster.Rewind(t.Context(), func() {
		assertReconciles(t, cluster, "meanwhile") // where the API server was only started again
		select {
		case <-process.Done():
			assert.Fail(t, "it ends where nothing but the API server was started again")
		default:
		}
	}))
	select {
	case <-process.Done():
	case <-time.After(limit):
		log, err := process.Log()
		require.NoError(t, err)
		require.Fail(t, "it goes on", program.Tail(log, 40))
	}
	require.Error(t, process.Err(), "its supervisor restarts it")
	log, err := process.Log()
	require.NoError(t, err)
	assert.Contains(t, log, "waybill-sync: restart to read everything again: the API server went back in time, from resource version ")
}

// assertReconciles creates an Application, and waits until it has a status.
func assertReconciles(t *testing.T, cluster *env.Cluster, name string) {
	t.Helper()
	apps := dynamic.NewForConfigOrDie(cluster.RESTConfig()).Resource(v1alpha1.GroupVersion.WithResource("applications")).Namespace("default")
	_, err := apps.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.ApplicationKind, "metadata": map[string]any{"name": name},
		"spec": map[string]any{"type": "shop", "selector": map[string]any{"matchLabels": map[string]any{"app": "shop"}}},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		app, err := apps.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return false
		}
		observed, _, _ := unstructured.NestedInt64(app.Object, "status", "observedGeneration")
		return observed == app.GetGeneration()
	}, limit, often, "%s is not reconciled", name)
}
