package integration_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/webhooks"
	"waybill.dev/waybill/webhooks/registration"
)

// C51: installed by Helm, the webhook has all the rights that it needs and no more than the chart
// gives it; an upgrade leaves alone what it filled in; an uninstall leaves nothing that blocks.
func TestChart_livesWithTheWebhook(t *testing.T) {
	cluster := env.Start(t, env.Options{Name: "chart"})
	clientset, err := kubernetes.NewForConfig(cluster.RESTConfig())
	require.NoError(t, err)
	helm := helmOf(t, cluster)
	chart, err := loader.LoadDir(waybillChart)
	require.NoError(t, err)

	install := action.NewInstall(helm)
	install.ReleaseName, install.Namespace, install.CreateNamespace = "waybill", v1alpha1.DefaultSystemNamespace, true
	_, err = install.RunWithContext(t.Context(), chart, nil)
	require.NoError(t, err)

	createApplication(t, cluster.RESTConfig())
	stop := runWebhook(t, cluster.RESTConfig())
	filled := filledConfiguration(t, clientset)
	awaitInjection(t, clientset, "configmaps")
	require.NoError(t, cluster.InstallCRDs(t.Context(), "testdata/widgets.yaml"))
	awaitInjection(t, clientset, "widgets")

	assertUpgradesCRDs(t, cluster)
	upgrade := action.NewUpgrade(helm)
	upgrade.Namespace = v1alpha1.DefaultSystemNamespace
	_, err = upgrade.RunWithContext(t.Context(), "waybill", chart, map[string]any{"webhook": map[string]any{"replicas": 3}})
	require.NoError(t, err)
	assert.Equal(t, filled, filledConfiguration(t, clientset), "an upgrade empties nothing")

	secrets := clientset.CoreV1().Secrets(v1alpha1.DefaultSystemNamespace)
	require.NoError(t, secrets.Delete(t.Context(), registration.SecretName, metav1.DeleteOptions{}))
	installGadgets(t, cluster)
	awaitInjection(t, clientset, "gadgets")
	assert.Equal(t, filled, filledConfiguration(t, clientset), "it may not make another one, and goes on with the one that is trusted")
	_, err = upgrade.RunWithContext(t.Context(), "waybill", chart, nil)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		secret, err := secrets.Get(t.Context(), registration.SecretName, metav1.GetOptions{})
		return err == nil && len(secret.Data) > 0
	}, limit, often, "it is made again, and filled")

	assertPeopleMay(t, clientset)

	_, err = action.NewUninstall(helm).Run("waybill")
	require.NoError(t, err)
	_, err = clientset.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), registration.ConfigurationName, metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	stop()
	_, err = clientset.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), registration.ConfigurationName, metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "a webhook that is still there makes it again: %v", err)
}

// assertUpgradesCRDs: what the README and the notes say upgrades the CustomResourceDefinitions that
// Helm made, and those that a hub has applied since, as it does in user clusters.
func assertUpgradesCRDs(t *testing.T, cluster *env.Cluster) {
	t.Helper()
	const is = "changed by a newer version"
	folder := t.TempDir()
	require.NoError(t, os.CopyFS(folder, os.DirFS(waybillChart+"/crds")))
	changed := filepath.Join(folder, "apps.waybill.dev_applicationdefinitions.yaml")
	require.NoError(t, kubectlApply(t, cluster, folder, "--force-conflicts", "--field-manager="+v1alpha1.FieldManager), "as a hub does")
	content, err := os.ReadFile(changed)
	require.NoError(t, err)
	crd := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal(content, crd))
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	require.NoError(t, unstructured.SetNestedField(versions[0].(map[string]any), is, "schema", "openAPIV3Schema", "description"))
	require.NoError(t, unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"))
	content, err = yaml.Marshal(crd)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(changed, content, 0o600))

	require.ErrorContains(t, kubectlApply(t, cluster, folder), "conflict", "why the flag is there")
	require.NoError(t, kubectlApply(t, cluster, folder, "--force-conflicts"))
	got, err := cluster.Kubectl(t.Context(), "", "get", "crd", crd.GetName(), "--output", "jsonpath={.spec.versions[0].schema.openAPIV3Schema.description}")
	require.NoError(t, err)
	assert.Equal(t, is, got)
}

func kubectlApply(t *testing.T, cluster *env.Cluster, folder string, flags ...string) error {
	t.Helper()
	_, err := cluster.Kubectl(t.Context(), "", append([]string{"apply", "--server-side", "-f", folder}, flags...)...)
	return err
}

// createApplication creates one that lists a kind which is there, and two which are not.
func createApplication(t *testing.T, config *rest.Config) {
	t.Helper()
	c, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	app := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.ApplicationKind,
		"metadata": map[string]any{"name": "web"},
		"spec": map[string]any{
			"type": "web", "selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
			"components": []any{
				map[string]any{"kind": "ConfigMap"},
				map[string]any{"kind": "Widget", "group": "example.com"}, map[string]any{"kind": "Gadget", "group": "example.com"},
			},
		},
	}}
	_, err = c.Resource(v1alpha1.GroupVersion.WithResource("applications")).Namespace(metav1.NamespaceDefault).Create(t.Context(), app, metav1.CreateOptions{})
	require.NoError(t, err)
}

// installGadgets makes a kind that is like Widget.
func installGadgets(t *testing.T, cluster *env.Cluster) {
	t.Helper()
	widgets, err := os.ReadFile("testdata/widgets.yaml")
	require.NoError(t, err)
	gadgets := filepath.Join(t.TempDir(), "gadgets.yaml")
	require.NoError(t, os.WriteFile(gadgets, []byte(strings.NewReplacer("Widget", "Gadget", "widget", "gadget").Replace(string(widgets))), 0o600))
	require.NoError(t, cluster.InstallCRDs(t.Context(), gadgets))
}

// awaitInjection: the chart gives the webhook the rights to learn of Applications, and of kinds that
// come later (C51).
func awaitInjection(t *testing.T, clientset kubernetes.Interface, resource string) {
	t.Helper()
	require.Eventually(t, func() bool {
		configuration, err := clientset.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(t.Context(), registration.ConfigurationName, metav1.GetOptions{})
		require.NoError(t, err)
		for _, w := range configuration.Webhooks {
			for _, r := range w.Rules {
				if slices.Contains(r.Resources, resource) {
					return true
				}
			}
		}
		return false
	}, limit, often, resource)
}

func helmOf(t *testing.T, cluster *env.Cluster) *action.Configuration {
	t.Helper()
	flags := genericclioptions.NewConfigFlags(false)
	kubeconfig, namespace := cluster.KubeconfigFile(), v1alpha1.DefaultSystemNamespace
	flags.KubeConfig, flags.Namespace = &kubeconfig, &namespace
	configuration := &action.Configuration{}
	require.NoError(t, configuration.Init(flags, namespace, "secret", t.Logf))
	return configuration
}

// runWebhook runs the webhook as its Pod would, with the rights of its ServiceAccount, until it
// is ready. The function that it returns stops it.
func runWebhook(t *testing.T, admin *rest.Config) func() {
	t.Helper()
	config := rest.CopyConfig(admin)
	namespace := v1alpha1.DefaultSystemNamespace
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + namespace + ":waybill-webhook",
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}
	health := env.Address(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- webhooks.Run(ctx, config, webhooks.Options{
			Registration: registration.Options{
				Namespace: namespace, Endpoint: registration.ServiceEndpoint(namespace, "waybill-webhook"), Listen: env.Address(t),
			},
			MetricsAddress: "0", HealthAddress: health,
		})
	}()
	require.Eventually(t, func() bool {
		resp, err := http.Get("http://" + health + "/readyz")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}, limit, often, "the webhook does not become ready")
	return func() {
		cancel()
		require.NoError(t, <-ended)
	}
}

// filledConfiguration is what the webhook wrote into the chart's configuration.
func filledConfiguration(t *testing.T, clientset kubernetes.Interface) []string {
	t.Helper()
	configuration, err := clientset.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), registration.ConfigurationName, metav1.GetOptions{})
	require.NoError(t, err)
	var found []string
	for _, w := range configuration.Webhooks {
		require.Equal(t, "waybill-webhook", w.ClientConfig.Service.Name)
		found = append(found, w.Name+" "+string(w.ClientConfig.CABundle))
	}
	require.NotEmpty(t, found)
	return found
}
