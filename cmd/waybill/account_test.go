package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

const lookingUp = `
apiVersion: v1
kind: ConfigMap
metadata: {name: seen}
data:
  looked-up: {{ (lookup "v1" "ConfigMap" .Release.Namespace "kept").data | default (dict "password" "made") | toJson | quote }}
`

// strict takes allowLookup out of a catalog.
func strict(t *testing.T, catalog string) {
	t.Helper()
	file := filepath.Join(catalog, "definition.yaml")
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(content), "  allowLookup: true\n")
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(content), "  allowLookup: true\n", "", 1)), 0o600))
}

// C60: what is shown is what would be installed: without an account, nothing is looked up, with the rights
// of the user who asks either.
func TestRender_looksUpWhatTheInstallationMay(t *testing.T) {
	cluster := user(t)
	inst, _, catalog := chartInstallation(t, cluster, lookingUp)
	strict(t, catalog)
	c := clientOf(t, cluster)
	create(t, c, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: inst.Namespace, Name: "kept"}, Data: map[string]string{"password": "old"}})
	args := []string{"render", "installation/seeing", "-n", inst.Namespace, "--system-namespace", inst.Namespace, "--definition", catalog}

	got := waybill(t, cluster, args...)
	require.Equal(t, 0, got.code, got.errOut)
	assert.Contains(t, got.out, `looked-up: '{"password":"made"}'`)
	assert.Contains(t, got.errOut, "which it finds none of in an installation that acts as no ServiceAccount: set spec.serviceAccountName, or spec.allowLookup")

	before := client.MergeFrom(inst.DeepCopy())
	inst.Spec.ServiceAccountName = "deployer"
	require.NoError(t, c.Patch(t.Context(), inst, before))
	got = waybill(t, cluster, args...)
	require.Equal(t, 0, got.code, got.errOut)
	assert.Contains(t, got.out, `looked-up: '{"password":"old"}'`)
}

// C60: what waybill-sync would not use is not rendered either.
func TestRender_wantsProtectedValues(t *testing.T) {
	cluster := user(t)
	inst, _, catalog := chartInstallation(t, cluster, lookingUp)
	c := clientOf(t, cluster)
	values := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: inst.Namespace, Name: "vals"}, Data: map[string]string{"values.yaml": "a: 1"}}
	create(t, c, values)
	before := client.MergeFrom(inst.DeepCopy())
	inst.Spec.ValuesFrom = []v1alpha1.ValuesReference{{Kind: "ConfigMap", Name: "vals"}}
	require.NoError(t, c.Patch(t.Context(), inst, before))
	args := []string{"render", "installation/seeing", "-n", inst.Namespace, "--system-namespace", inst.Namespace, "--definition", catalog}

	got := waybill(t, cluster, args...)
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.errOut, "spec.valuesFrom[0]: ConfigMap "+inst.Namespace+"/vals lacks the label apps.waybill.dev/values: protected")
	values.Labels = map[string]string{v1alpha1.ValuesLabel: v1alpha1.ValuesProtected}
	require.NoError(t, c.Update(t.Context(), values))
	got = waybill(t, cluster, args...)
	assert.Equal(t, 0, got.code, got.errOut)
}

// C60: an installation may do what its ServiceAccount may, whatever the rights of who looks.
func TestDiff_asTheAccountOfAnInstallation(t *testing.T) {
	cluster := user(t)
	inst, _, catalog := chartInstallation(t, cluster, lookingUp)
	c := clientOf(t, cluster)
	hubWithID(t, c, inst.Namespace, "the-hub")
	before := client.MergeFrom(inst.DeepCopy())
	inst.Spec.ServiceAccountName = "deployer"
	require.NoError(t, c.Patch(t.Context(), inst, before))
	account := "system:serviceaccount:" + inst.Namespace + ":deployer"
	args := []string{"diff", "installation/seeing", "-n", inst.Namespace, "--system-namespace", inst.Namespace, "--definition", catalog}

	got := waybill(t, cluster, args...)
	assert.Equal(t, 2, got.code, got.out)
	assert.Contains(t, got.errOut, `User "`+account+`" cannot get resource "configmaps"`, "it looks that up")
	grant(t, cluster, account, inst.Namespace, right("", []string{"configmaps"}, "get", "create"), right("", []string{"secrets"}, "get", "list"))
	got = waybill(t, cluster, args...)
	assert.Equal(t, 1, got.code, got.errOut)
	assert.Contains(t, got.out, "/seen in user: created\n")
}
