package applicationinstallation_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// K53, C55: a release of another tool is left alone. It is taken over, with its objects as they are, once
// a user has deleted its records.
func TestInstallation_takesOverTheObjectsOfAnotherTool(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.helmInstall("web")
	before := w.deployment("web")
	w.define(nil)
	inst := w.install(nil)

	assert.Contains(t, hub.AwaitReason(w.World, inst, v1alpha1.ReleaseConflictReason),
		"another tool has installed a release of this name; uninstall it or, to take over its objects, delete the Secrets of its revisions")
	assert.Equal(t, before.Generation, w.deployment("web").Generation)

	require.NoError(t, w.Client.DeleteAllOf(t.Context(), &corev1.Secret{}, client.InNamespace(w.Namespace), client.MatchingLabels{"owner": "helm", "name": "web"}))
	hub.AwaitReady(w.World, inst)
	after := &appsv1.Deployment{}
	require.True(t, w.Exists(after, "web"))
	assert.Equal(t, before.UID, after.UID, "its Pods run on")
	assert.Len(t, w.releases("web"), 1)
}

// helmInstall installs the chart of examples/ as the helm command does, and waits for nothing.
func (w *world) helmInstall(name string) {
	w.T.Helper()
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig, flags.Namespace = ptr.To(w.Cluster.KubeconfigFile()), &w.Namespace
	helm := &action.Configuration{}
	require.NoError(w.T, helm.Init(flags, w.Namespace, "secret", func(string, ...any) {}))
	web, err := loader.Load("../../../examples/charts/web")
	require.NoError(w.T, err)
	install := action.NewInstall(helm)
	install.ReleaseName, install.Namespace, install.DisableHooks = name, w.Namespace, true
	_, err = install.RunWithContext(w.T.Context(), web, map[string]any{"hook": map[string]any{"enabled": false}})
	require.NoError(w.T, err)
}
