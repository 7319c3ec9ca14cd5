package main

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// C33: what is not known of the cluster is said, and charts are rendered without it.
func TestRender_factsThatAreNotKnown(t *testing.T) {
	s, cluster := newSources(t), user(t)
	tenant, _ := userWith(t, cluster, cluster.Namespace(t), right("", []string{"configmaps"}, "get"))
	nothing := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(nothing.Close)
	values := write(t, map[string]string{"facts.yaml": "waybill: {cluster: {name: from-values}}\n"})
	args := []string{"render", "-f", s.path("installations", "team-b", "widgets.yaml"), "--definition", s.path("catalog", "widgets.yaml")}
	got := waybillWith(t, "", append(args, "--kubeconfig", tenant)...)
	require.Equal(t, 0, got.code, got.errOut) // and the chart is in the cache, for who is offline
	for name, tc := range map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"not readable": {
			"a tenant renders what others let run", []string{"--kubeconfig", tenant}, `cannot list resource "kubernetesclusters"`,
		},
		"not there": {
			"a cluster without Waybill", []string{"--kubeconfig", kubeconfigFile(t, &rest.Config{Host: nothing.URL})}, "KubernetesCluster",
		},
		"nobody is asked": {"on a laptop", []string{"--offline"}, "no cluster is asked"},
	} {
		t.Run(name, func(t *testing.T) {
			args := append(slices.Clone(args), tc.args...)
			got := waybillWith(t, "", args...)
			assert.Equal(t, 0, got.code, "%s: %s", tc.reason, got.errOut)
			assert.Contains(t, got.out, "kind: Widget\n")
			assert.Regexp(t, `^warning: facts about the cluster are not known, so .Values.waybill.cluster has an empty name and version, and no labels: `, got.errOut)
			assert.Contains(t, got.errOut, tc.want)

			got = waybillWith(t, "", append(args, "--values", filepath.Join(values, "facts.yaml"))...)
			assert.Contains(t, got.out, "from-values", "the way out")
		})
	}
}
