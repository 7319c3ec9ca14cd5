package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// K50: what the noted record of a release names goes with an upgrade by Helm's marks; if the record is not as noted, our own
// mark decides.
func TestDiff_goesByWhatIsNotedOfARelease(t *testing.T) {
	s := newSources(t)
	userCluster := user(t)
	u := clientOf(t, userCluster)
	apps := userCluster.Namespace(t)
	web := &v1alpha1.ApplicationDefinition{}
	readYAML(t, s.path("catalog", "web.yaml"), web)
	web.Name = apps // definitions are shared by all tests
	inst := installation(apps, "web", apps, "1.0.0")
	inst.Spec.ValuesBlock = "hook: {enabled: false}"
	inst.Status.Release = installWeb(t, userCluster, apps, &chart.File{
		Name: "templates/gone.yaml", Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: gone}\n"),
	})
	create(t, u, web, inst, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: apps, Name: v1alpha1.HubConfigMap}, Data: map[string]string{v1alpha1.HubIDKey: "the-hub"},
	})
	gone := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: apps, Name: "gone"}}
	unmark := []byte(`{"metadata":{"labels":{"` + v1alpha1.OwnerHashLabel + `":null}}}`)
	require.NoError(t, u.Patch(t.Context(), gone, client.RawPatch(types.MergePatchType, unmark)))
	args := []string{"diff", "installation/web", "-n", apps, "--system-namespace", apps}

	got := waybill(t, userCluster, args...)
	assert.Equal(t, 1, got.code, got.errOut)
	assert.Contains(t, got.out, "# ConfigMap "+apps+"/gone in user: deleted\n")
	assert.Contains(t, got.errOut, "0 created, 0 changed, 1 deleted, 0 refused, 3 as they are\n")

	another := []byte(`{"status":{"release":{"recordDigest":"another","storedDigest":"another"}}}`)
	require.NoError(t, u.Status().Patch(t.Context(), inst, client.RawPatch(types.MergePatchType, another)))
	got = waybill(t, userCluster, args...)
	assert.Contains(t, got.errOut, "0 deleted")
	assert.Contains(t, got.out+got.errOut, "it no longer has the labels and annotations of the release")
}

// K50: a chart that keeps the password that it has made, by looking it up, changes nothing.
func TestDiff_chartThatLooksUp(t *testing.T) {
	cluster := user(t)
	inst, folder, catalog := chartInstallation(t, cluster, `
apiVersion: v1
kind: Secret
metadata: {name: made}
data:
  password: {{ (lookup "v1" "Secret" .Release.Namespace "made").data | default dict | dig "password" (randAlphaNum 16 | b64enc) | quote }}
`)
	c := clientOf(t, cluster)
	hubWithID(t, c, inst.Namespace, "the-hub")
	args := []string{"diff", "installation/seeing", "-n", inst.Namespace, "--system-namespace", inst.Namespace, "--definition", catalog}
	got := waybill(t, cluster, args...)
	assert.Equal(t, 1, got.code, got.errOut)
	assert.Contains(t, got.errOut, "1 created, 0 changed")

	loaded, err := loader.LoadDir(folder)
	require.NoError(t, err)
	before := client.MergeFrom(inst.DeepCopy())
	inst.Status.Release = install(t, cluster, inst.Namespace, loaded, nil)
	require.NoError(t, c.Status().Patch(t.Context(), inst, before))
	got = waybill(t, cluster, args...)
	assert.Equal(t, 0, got.code, got.out)
	assert.Contains(t, got.errOut, "0 created, 0 changed, 0 deleted, 0 refused, 1 as they are\n")
}

// K50: Helm refuses a release as a whole, so what has left it stays while something of it is refused.
func TestDiff_ofReleaseThatIsRefused(t *testing.T) {
	cluster := user(t)
	inst, folder, catalog := chartInstallation(t, cluster, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not_Valid}\n")
	c := clientOf(t, cluster)
	hubWithID(t, c, inst.Namespace, "the-hub")
	loaded, err := loader.LoadDir(folder)
	require.NoError(t, err)
	loaded.Templates = []*chart.File{{Name: "templates/gone.yaml", Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: gone}\n")}}
	before := client.MergeFrom(inst.DeepCopy())
	inst.Status.Release = install(t, cluster, inst.Namespace, loaded, nil)
	require.NoError(t, c.Status().Patch(t.Context(), inst, before))

	got := waybill(t, cluster, "diff", "installation/seeing", "-n", inst.Namespace, "--system-namespace", inst.Namespace, "--definition", catalog)
	assert.Equal(t, 1, got.code, got.errOut)
	assert.Contains(t, got.out, "/gone in user: kept: ")
	assert.Contains(t, got.errOut, "0 deleted, 1 refused")
}

// K37: files may hold an installation and the namespaces that it needs, which only `kubectl apply` makes.
func TestDiff_filesWithTheNamespaceOfAnInstallation(t *testing.T) {
	s := newSources(t)
	folder := write(t, map[string]string{
		"namespaces.yaml": "{apiVersion: v1, kind: Namespace, metadata: {name: not-there-yet}}\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: nor-this-one}}\n",
		"web.yaml": `apiVersion: apps.waybill.dev/v1alpha1
kind: ApplicationInstallation
metadata: {name: web, namespace: not-there-yet}
spec: {applicationRef: {name: web, version: 1.0.0}}
---
apiVersion: apps.waybill.dev/v1alpha1
kind: ApplicationInstallation
metadata: {name: other, namespace: not-there-yet}
spec: {applicationRef: {name: web, version: 1.0.0}, namespace: {name: nor-this-one, create: true}}
---
apiVersion: apps.waybill.dev/v1alpha1
kind: ApplicationInstallation
metadata: {name: first, namespace: not-there-yet}
spec: {applicationRef: {name: web, version: 1.0.0}, namespace: {name: for-two, create: true}}
---
apiVersion: apps.waybill.dev/v1alpha1
kind: ApplicationInstallation
metadata: {name: second, namespace: not-there-yet}
spec: {applicationRef: {name: web, version: 1.0.0}, namespace: {name: for-two, create: true}}
`,
	})
	got := waybill(t, user(t), "diff", "-f", folder, "--definition", s.path("catalog", "web.yaml"))
	assert.Equal(t, 1, got.code, got.errOut)
	assert.Contains(t, got.out, "# Deployment.apps not-there-yet/web in user: created\n")
	assert.Contains(t, got.out, "# Deployment.apps nor-this-one/other in user: created\n")
	assert.Contains(t, got.errOut, " 0 refused,", got.out)
	assert.Equal(t, 1, strings.Count(got.out, "# Namespace nor-this-one in user: created\n"), got.out)
	assert.Equal(t, 1, strings.Count(got.out, "# Namespace for-two in user: created\n"), got.out)
	assert.Contains(t, got.out, "# Deployment.apps for-two/second in user: created\n")
}
