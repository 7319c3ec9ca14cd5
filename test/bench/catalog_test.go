package bench

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/observe"
)

// definition is the name of the definition that rows install.
const definition = "app"

// defineApplication serves a chart of testdata in a Helm repository, and creates a definition of it
// in the hub.
func (h *hub) defineApplication(b *testing.B, chart string) {
	b.Helper()
	charts, err := env.StartHelmRepo(env.Access{})
	require.NoError(b, err)
	b.Cleanup(charts.Stop)
	_, err = charts.Push("testdata/" + chart)
	require.NoError(b, err)
	h.create(b, definitions, definitionOf(charts.URL(), chart, "1.0.0"))
}

// definitionOf returns the definition of a chart, with versions that are called as the chart's are.
func definitionOf(url, chart string, versions ...string) *unstructured.Unstructured {
	var offered []any
	for _, version := range versions {
		offered = append(offered, map[string]any{
			"version": version,
			"template": map[string]any{"source": map[string]any{"helm": map[string]any{
				"url": url, "chartName": chart, "chartVersion": version,
			}}},
		})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.ApplicationDefinitionKind,
		"metadata": map[string]any{"name": definition},
		"spec":     map[string]any{"method": "helm", "versions": offered},
	}}
}

// registerItself registers the hub as a user cluster as well, and waits until it is Ready.
func (h *hub) registerItself(b *testing.B) {
	b.Helper()
	h.create(b, clusters, kubernetesCluster("hub", nil, nil))
	await(b, h.view(b, clusters, system), 1, observe.Ready)
}

// register registers a user cluster with the hub, by a kubeconfig.
func (h *hub) register(b *testing.B, name string, kubeconfig []byte, labels map[string]any) {
	b.Helper()
	h.create(b, secrets, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret",
		"metadata":   map[string]any{"name": name, "namespace": system},
		"stringData": map[string]any{"value": string(kubeconfig)},
	}})
	h.create(b, clusters, kubernetesCluster(name, labels, map[string]any{"kubeconfigSecretRef": map[string]any{"name": name}}))
}

func kubernetesCluster(name string, labels, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.KubernetesClusterKind,
		"metadata": map[string]any{"name": name, "namespace": system, "labels": labels},
		"spec":     spec,
	}}
}

// installation returns an installation of the definition into its own namespace.
func installation(namespace, name string, values map[string]any) *unstructured.Unstructured {
	spec := map[string]any{"applicationRef": map[string]any{"name": definition, "version": "1.0.0"}}
	if values != nil {
		spec["values"] = values
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.ApplicationInstallationKind,
		"metadata": map[string]any{"name": name, "namespace": namespace},
		"spec":     spec,
	}}
}
