package kubernetescluster_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
)

const installationsCRD = "applicationinstallations.apps.waybill.dev"

// crdClient reads and writes CRDs.
func crdClient(t *testing.T, c *env.Cluster) client.Client {
	t.Helper()
	scheme := newScheme(t)
	require.NoError(t, apiextensionsv1.AddToScheme(scheme))
	direct, err := client.New(c.RESTConfig(), client.Options{Scheme: scheme})
	require.NoError(t, err)
	return direct
}

// editCRD changes the CRD of installations, and returns it.
func editCRD(t *testing.T, c client.Client, edit func(*apiextensionsv1.CustomResourceDefinition)) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: installationsCRD}, crd))
	edit(crd)
	require.NoError(t, c.Update(t.Context(), crd))
	return crd
}

// K40: a CRD of an older Waybill is brought up to date, one of a newer is left alone.
func TestCRDs_areBroughtUpToDate(t *testing.T) {
	h := newHub(t, options{})
	h.add("eu-1", userCluster(t).Kubeconfig())
	h.until("eu-1", isReady, "it is engaged")
	crds := crdClient(t, userCluster(t))
	again := func() {
		h.change("eu-1", func(kc *v1alpha1.KubernetesCluster) { kc.Spec.Paused = true })
		h.until("eu-1", reason(v1alpha1.SuspendedReason), "it is paused")
		h.change("eu-1", func(kc *v1alpha1.KubernetesCluster) { kc.Spec.Paused = false })
		h.until("eu-1", isReady, "it is engaged anew")
	}
	var full apiextensionsv1.JSONSchemaProps
	editCRD(t, crds, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Annotations[v1alpha1.CRDHashAnnotation] = "older"
		properties := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties
		full = properties["reconciliationInterval"]
		delete(properties, "reconciliationInterval")
	})
	again()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	require.NoError(t, crds.Get(t.Context(), client.ObjectKey{Name: installationsCRD}, crd))
	assert.Equal(t, full, crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["reconciliationInterval"])

	newer := editCRD(t, crds, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Annotations[v1alpha1.CRDHashAnnotation] = "newer"
		next := crd.Spec.Versions[0].DeepCopy()
		next.Name, next.Storage = "v1beta1", false
		crd.Spec.Versions = append(crd.Spec.Versions, *next)
	})
	again()
	require.NoError(t, crds.Get(t.Context(), client.ObjectKey{Name: installationsCRD}, crd))
	assert.Equal(t, newer.Generation, crd.Generation)
	editCRD(t, crds, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Versions = crd.Spec.Versions[:1]
		delete(crd.Annotations, v1alpha1.CRDHashAnnotation)
	})
}

// A kubeconfig without the right to install CRDs: the right is named, and once it is there
// nothing has to be done on the hub.
func TestCRDs_withoutTheRight(t *testing.T) {
	h := newHub(t, options{})
	weak, err := userCluster(t).AddUser("weak")
	require.NoError(t, err)
	kubeconfig, err := env.Kubeconfig("user", weak)
	require.NoError(t, err)
	user := newClient(t, userCluster(t).RESTConfig())
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "weak"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}}},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "weak"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "weak"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "weak"}},
	}
	for _, o := range []client.Object{role, binding} {
		require.NoError(t, user.Create(t.Context(), o))
		t.Cleanup(func() { _ = user.Delete(cleanup(t), o) })
	}
	h.add("eu-1", kubeconfig)
	kc := h.until("eu-1", func(kc *v1alpha1.KubernetesCluster) bool {
		return reason(v1alpha1.ForbiddenReason)(kc) && strings.Contains(condition(kc, v1alpha1.ReadyCondition).Message, "install CRD")
	}, "it may not install CRDs")
	assert.Contains(t, condition(kc, v1alpha1.ReadyCondition).Message, `the user of the kubeconfig lacks a permission: install CRD `)
	assert.Contains(t, condition(kc, v1alpha1.ReadyCondition).Message, `User "weak" cannot get resource "customresourcedefinitions"`)
	assert.True(t, kc.Status.Reachable)

	role.Rules = append(role.Rules,
		rbacv1.PolicyRule{APIGroups: []string{apiextensionsv1.GroupName}, Resources: []string{"*"}, Verbs: []string{"*"}},
		rbacv1.PolicyRule{APIGroups: []string{v1alpha1.Group}, Resources: []string{"*"}, Verbs: []string{"*"}})
	require.NoError(t, user.Update(t.Context(), role))
	h.until("eu-1", isReady, "the right was granted")
}
