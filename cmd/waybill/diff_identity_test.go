package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/v1alpha1"
)

// tenantSync is the GitSync of examples/gitsync/tenant.yaml, in another namespace.
func tenantSync(t *testing.T, namespace string) *v1alpha1.GitSync {
	t.Helper()
	content, err := os.ReadFile("../../examples/gitsync/tenant.yaml")
	require.NoError(t, err)
	for document := range strings.SplitSeq(string(content), "\n---\n") {
		if strings.Contains(document, "\nkind: GitSync\n") {
			tenant := &v1alpha1.GitSync{}
			require.NoError(t, yaml.UnmarshalStrict([]byte(document), tenant))
			tenant.Namespace, tenant.Spec.TargetNamespace = namespace, namespace
			return tenant
		}
	}
	require.Fail(t, "the example has no GitSync")
	return nil
}

// C37: a tenant's GitSync may do what its ServiceAccount may, whatever the rights of who looks.
func TestDiff_asTheOneWhoDelivers(t *testing.T) {
	cluster := hub(t)
	c, namespace, other := clientOf(t, cluster), cluster.Namespace(t), cluster.Namespace(t)
	tenant := tenantSync(t, namespace)
	account := "system:serviceaccount:" + namespace + ":" + tenant.Spec.ServiceAccountName
	create(t, c, tenant, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: tenant.Spec.ServiceAccountName}})
	grant(t, cluster, account, namespace, right("", []string{"configmaps"}, "get", "create", "patch"))
	folder := write(t, map[string]string{
		"own.yaml": configMapYAML(namespace, "own", "a"), "foreign.yaml": configMapYAML(other, "foreign", "a"),
	})

	got := waybill(t, cluster, "diff", "gitsync/app", "-n", namespace, "--path", folder)
	assert.Equal(t, 1, got.code, got.errOut)
	assert.Contains(t, got.out, "/own in hub: created\n")
	assert.Contains(t, got.out, "/foreign in hub: refused: ")
	assert.Contains(t, got.out, `User "`+account+`" cannot get resource "configmaps"`)
}

// C37, A40: who may not act as the ServiceAccount is told so, and what such a user may not do is no answer,
// but hides nothing else.
func TestDiff_byWhoMayNotActAsTheOneWhoDelivers(t *testing.T) {
	cluster := hub(t)
	namespace := cluster.Namespace(t)
	create(t, clientOf(t, cluster), tenantSync(t, namespace))
	kubeconfig, _ := userWith(t, cluster, namespace, right(v1alpha1.Group, []string{"gitsyncs"}, "get"),
		right("", []string{"configmaps"}, "get", "create", "patch"), right("", []string{"services"}, "get"))
	folder := write(t, map[string]string{
		"own.yaml":          configMapYAML(namespace, "own", "a"),
		"not-writable.yaml": "{apiVersion: v1, kind: Service, metadata: {name: not-writable}, spec: {ports: [{port: 80}]}}",
		"not-readable.yaml": "{apiVersion: v1, kind: Secret, metadata: {name: not-readable}}",
	})

	got := waybillWith(t, "", "diff", "gitsync/app", "-n", namespace, "--system-namespace", namespace, "--path", folder, "--kubeconfig", kubeconfig)
	assert.Equal(t, 2, got.code, got.out)
	assert.Contains(t, got.errOut, "with your rights, and not with those of ServiceAccount "+namespace+"/deployer, which you may not impersonate")
	assert.Contains(t, got.errOut, `User "`+namespace+`" cannot patch resource "services"`)
	assert.Contains(t, got.errOut, `User "`+namespace+`" cannot get resource "secrets"`)
	assert.Contains(t, got.out, "# ConfigMap "+namespace+"/own in user: created\n")
	assert.Contains(t, got.errOut, "1 created, 0 changed, 0 deleted, 0 refused, 0 as they are\nerror: the comparison is not complete: 2 left out\n")
}
