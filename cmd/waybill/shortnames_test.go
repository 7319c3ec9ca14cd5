package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/fleet"
)

// The CustomResourceDefinitions have them, so kubectl knows the same as waybill; the page lists them;
// and no kind of Kubernetes has one of them.
func TestShortNames(t *testing.T) {
	want := map[string]string{
		"StatefulApplication": "sapp", "StatefulApplicationClass": "sappclass", "ApplicationSnapshot": "appsnap",
		"ApplicationSnapshotClass": "appsnapclass", "ApplicationSnapshotContent": "appsnapcontent", "ApplicationRollback": "approll",
		"GitSync": "gs", "KubernetesCluster": "kc", "ApplicationDefinition": "ad", "ApplicationInstallation": "ai",
		"KubernetesApplication": "ka", "KubernetesApplicationResource": "kar",
	}
	all, incomplete, err := fleet.NewHub("hub", hub(t).RESTConfig()).Resources()
	require.NoError(t, err)
	require.NoError(t, incomplete)
	whose := map[string]string{}
	for _, kind := range all {
		if kind.Group == "events.k8s.io" {
			continue // the Events of core/v1 once more
		}
		for _, name := range kind.Names {
			if other, taken := whose[name]; taken && other != kind.String() {
				t.Errorf("%s is a name of %s and of %s", name, other, kind)
			}
			whose[name] = kind.String()
		}
	}
	page, err := os.ReadFile("../../api/docs/waybill.md")
	require.NoError(t, err)
	namespace := hub(t).Namespace(t)
	for kind, short := range want {
		assert.Equal(t, kind+"."+v1alpha1.Group, whose[short], short)
		assert.Contains(t, string(page), "| "+kind+" | `"+short+"`", "the table of the page")
		got := waybill(t, hub(t), "get", strings.ToUpper(short), "-n", namespace, "-l", "none")
		assert.Equal(t, 0, got.code, got.errOut)
		_, err := hub(t).Kubectl(t.Context(), "", "get", short, "-n", namespace)
		assert.NoError(t, err)
	}
}
