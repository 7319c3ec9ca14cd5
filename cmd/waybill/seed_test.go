package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
)

// seedExample is a hub with two seeds: europe, which has a cluster, and asia, which does not answer. To make do
// with two API servers, the cluster of europe is the one of the hub.
type seedExample struct {
	hub, seed *env.Cluster
	namespace string // in each
	clusters  string // the namespace of the seed that has its KubernetesCluster
}

func newSeedExample(t *testing.T) seedExample {
	t.Helper()
	s := seedExample{hub: hub(t), seed: user(t)}
	s.namespace, s.clusters = s.hub.Namespace(t), s.seed.Namespace(t)
	h, u := clientOf(t, s.hub), clientOf(t, s.seed)
	asia := &v1alpha1.KubernetesCluster{}
	for name, kubeconfig := range map[string][]byte{"europe": s.seed.Kubeconfig(), "asia": deadKubeconfig(t, s.seed)} {
		engageAs(t, h, client.ObjectKey{Namespace: s.namespace, Name: name}, kubeconfig, v1alpha1.ClusterRoleSeed)
	}
	require.NoError(t, h.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "asia"}, asia))
	asia.Status.Usage = []v1alpha1.DefinitionUsage{{Definition: s.namespace, VersionUsage: v1alpha1.VersionUsage{
		Version: "1.0.0", Count: 1, Installations: []string{"waybill-system/tokyo/far/web"},
	}}}
	require.NoError(t, h.Status().Update(t.Context(), asia))
	engage(t, u, s.clusters, "berlin", s.hub.Kubeconfig())
	create(t, h, definition(s.namespace, "1.0.0"), installation(s.namespace, "web", s.namespace, "1.0.0"))
	copied := definition(s.namespace, "1.0.0")
	copied.Annotations = map[string]string{v1alpha1.CopyOfAnnotation: "hub"}
	copied.Spec.Versions[0].Template.Source.Helm.URL = "https://127.0.0.1:1"
	create(t, u, copied)
	return s
}

// C47: what the clusters of seeds have is listed with what the hub's have. A seed that does not answer is one line.
func TestGet_reachesTheClustersOfSeeds(t *testing.T) {
	s := newSeedExample(t)
	got := waybill(t, s.hub, "get", "installations", "--all-clusters", "-n", s.namespace)
	require.Equal(t, 0, got.code, got.errOut)
	var clusters []string
	for _, line := range columns(got.out)[1:] {
		assert.Equal(t, []string{s.namespace, "web"}, line[1:3])
		clusters = append(clusters, line[0])
	}
	assert.Equal(t, []string{"hub", "europe/berlin"}, clusters, "the hub itself, and the cluster that is the same here")
	assert.Equal(t, 1, strings.Count(got.errOut, "cluster asia is missing"), got.errOut)
	assert.Contains(t, got.errOut, "warning: cluster asia is missing: ")

	for _, name := range []string{"europe/berlin", "europe/" + s.clusters + "/berlin"} {
		got = waybill(t, s.hub, "get", "installations", "--cluster", name, "-n", s.namespace, "-o", "name")
		require.Equal(t, 0, got.code, got.errOut)
		assert.Equal(t, "applicationinstallation.apps.waybill.dev/web\n", got.out)
	}
	for name, message := range map[string]string{
		"europe/oslo":    "no KubernetesCluster oslo in europe",
		"nowhere/berlin": "no KubernetesCluster berlin in the hub",
		"a/b/c/d":        "SEED/[NAMESPACE/]NAME",
	} {
		got = waybill(t, s.hub, "get", "installations", "--cluster", name)
		assert.Equal(t, 2, got.code)
		assert.Contains(t, got.errOut, message)
	}
}

// C47: a definition leads to what it is installed as in the clusters of seeds, also where that is only what was
// last seen.
func TestTree_reachesTheClustersOfSeeds(t *testing.T) {
	s := newSeedExample(t)
	got := waybill(t, s.hub, "tree", "definition/"+s.namespace)
	require.Equal(t, 0, got.code, got.errOut)
	for _, line := range []string{"europe/berlin", "asia", "last seen in cluster tokyo of the seed"} {
		assert.Contains(t, got.out, line)
	}
	got = waybill(t, s.hub, "tree", "cluster/europe", "-n", s.namespace)
	require.Equal(t, 0, got.code, got.errOut)
	assert.Contains(t, got.out, "europe/berlin")
	assert.Contains(t, got.out, "ApplicationInstallation/web")
}

// A seed installs from its own copy of a definition.
func TestDiff_inAClusterOfASeed(t *testing.T) {
	s := newSeedExample(t)
	got := waybill(t, s.hub, "diff", "installation/web", "-n", s.namespace, "--cluster", "europe/berlin")
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.errOut, "127.0.0.1:1", "the source is that of the seed's copy")

	web, copied := &v1alpha1.ApplicationDefinition{}, &v1alpha1.ApplicationDefinition{}
	readYAML(t, newSources(t).path("catalog", "web.yaml"), web)
	u := clientOf(t, s.seed)
	require.NoError(t, u.Get(t.Context(), client.ObjectKey{Name: s.namespace}, copied))
	copied.Spec.Versions = web.Spec.Versions
	require.NoError(t, u.Update(t.Context(), copied))
	got = waybill(t, s.hub, "diff", "installation/web", "-n", s.namespace, "--cluster", "europe/berlin")
	assert.Equal(t, 1, got.code, got.errOut)
	assert.Contains(t, got.out, "kind: Deployment", "it is what that version renders")
}
