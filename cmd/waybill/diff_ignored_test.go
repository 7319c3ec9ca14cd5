package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/test/env"
)

// scale does what an autoscaler does.
func scale(t *testing.T, cluster *env.Cluster, namespace string) {
	t.Helper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	require.NoError(t, clientOf(t, cluster).Patch(t.Context(), d, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":7}}`)), client.FieldOwner("hpa")))
}

var replicas = []v1alpha1.IgnoredDifference{{Target: &v1alpha1.DifferenceTarget{Kind: "Deployment"}, JSONPointers: []string{"/spec/replicas"}}}

// Fields that are ignored do not differ, in what a GitSync applies and in a release.
func TestDiff_leavesOutWhatIsIgnored(t *testing.T) {
	s, cluster := newSources(t), user(t)
	u := clientOf(t, cluster)
	system, apps := cluster.Namespace(t), cluster.Namespace(t)
	text := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {namespace: " + system + ", name: web}\n" +
		"spec: {replicas: 2, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web}]}}}\n"
	delivered(t, cluster, apply.Owner{HubID: "id", Kind: v1alpha1.GitSyncKind, Namespace: system, Name: "team-a"}, text)
	scale(t, cluster, system)
	gs := gitSync(system, "team-a")
	create(t, u, gs)
	of := []string{"diff", "gitsync/team-a", "-n", system, "--system-namespace", system, "--path", write(t, map[string]string{"web.yaml": text})}
	got := waybill(t, cluster, of...)
	assert.Contains(t, got.out, "-  replicas: 7\n+  replicas: 2\n", got.errOut)

	before := client.MergeFrom(gs.DeepCopy())
	gs.Spec.IgnoreDifferences = replicas
	require.NoError(t, u.Patch(t.Context(), gs, before))
	got = waybill(t, cluster, of...)
	assert.Equal(t, 0, got.code, got.out)
	assert.Contains(t, got.errOut, "1 as they are\n")

	web := &v1alpha1.ApplicationDefinition{}
	readYAML(t, s.path("catalog", "web.yaml"), web)
	web.Name = apps
	inst := installation(apps, "web", apps, "1.0.0")
	inst.Spec.ValuesBlock, inst.Spec.IgnoreDifferences = "hook: {enabled: false}", replicas
	create(t, u, web, inst)
	installWeb(t, cluster, apps)
	scale(t, cluster, apps)
	got = waybill(t, cluster, "diff", "installation/web", "-n", apps, "--system-namespace", apps)
	assert.NotContains(t, got.out, "replicas", got.errOut)
	got = waybill(t, cluster, "diff", "installation/web", "-n", apps, "--system-namespace", apps, "--version", "1.1.0")
	assert.NotContains(t, got.out, "replicas: 2", got.errOut)
}
