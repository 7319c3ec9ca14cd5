package applicationinstallation_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

const deployer = "deployer"

// addAccount creates the ServiceAccount of the test, with ClusterRole edit in its namespace alone.
func (w *world) addAccount() {
	w.T.Helper()
	w.Create(&corev1.ServiceAccount{ObjectMeta: objectMeta(deployer)})
	w.bind("edit")
	w.Cluster.AwaitGranted(w.T, w.User(deployer), w.Namespace, rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"secrets", "services"}, Verbs: []string{"create", "delete"},
	})
}

func (w *world) bind(role string) {
	w.T.Helper()
	w.Create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: deployer + "-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.Namespace, Name: deployer}},
	})
}

// written returns the resources of the test's namespace that were written since, by whom.
func (w *world) written(since env.AuditMark) (byAccount, byWaybill []string) {
	w.T.Helper()
	requests, err := w.Cluster.Requests(w.T.Context(), since, env.Writes, env.Accepted, func(r env.Request) bool {
		return r.Namespace == w.Namespace && !slices.Contains([]string{"events", "serviceaccounts", "rolebindings"}, r.Resource)
	})
	require.NoError(w.T, err)
	for _, r := range requests {
		what := r.Verb + " " + r.Resource
		switch {
		case r.As == w.User(deployer) && !slices.Contains(byAccount, what):
			byAccount = append(byAccount, what)
		case r.As == "" && !slices.Contains(byWaybill, what):
			byWaybill = append(byWaybill, what)
		}
	}
	return byAccount, byWaybill
}

func (w *world) mark() env.AuditMark {
	w.T.Helper()
	mark, err := w.Cluster.AuditMark(w.T.Context())
	require.NoError(w.T, err)
	return mark
}

// C60: record, hook and objects are written as the account, from the install to the uninstall; only
// Waybill's own books are not.
func TestInstallation_actsAsItsAccount(t *testing.T) {
	w := newWorld(t)
	w.addAccount()
	w.define(func(d *v1alpha1.ApplicationDefinitionSpec) { d.ServiceAccountName = deployer })
	began := w.mark()
	inst := hub.AwaitReady(w.World, w.install(nil))
	assert.Equal(t, deployer, inst.Status.Application.ServiceAccountName)
	assert.Equal(t, deployer, inst.Status.Release.ServiceAccountName)

	require.NoError(t, w.Client.Delete(t.Context(), w.deployment("web"), client.PropagationPolicy(metav1.DeletePropagationBackground)))
	require.True(t, w.Eventually(func() bool {
		d := w.peekDeployment("web")
		return d != nil && d.DeletionTimestamp == nil
	}), "drift is corrected")
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { i.Spec.ApplicationRef.Version = "1.1.0" })
	hub.AwaitReady(w.World, inst)
	upgraded := w.mark()
	byAccount, byWaybill := w.written(began)
	for _, what := range []string{"create secrets", "create jobs", "create deployments", "create services", "create configmaps", "patch deployments"} {
		assert.Contains(t, byAccount, what)
		if what != "create secrets" {
			assert.NotContains(t, byWaybill, what)
		}
	}
	assert.NotContains(t, byWaybill, "create secrets")
	assert.Contains(t, byWaybill, "patch applications", "Waybill's own book")

	require.NoError(t, w.Client.Delete(t.Context(), inst))
	w.AwaitGone(&v1alpha1.ApplicationInstallation{}, inst.Name)
	byAccount, byWaybill = w.written(upgraded)
	for _, what := range []string{"delete deployments", "delete services", "delete secrets"} {
		assert.Contains(t, byAccount, what)
		assert.NotContains(t, byWaybill, what)
	}
}

// C60: a right that the account lacks is a condition that says who lacks what; nothing is done with
// Waybill's own instead, and a target namespace is made as the account, too.
func TestInstallation_saysWhatItsAccountMayNot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Create(&corev1.ServiceAccount{ObjectMeta: objectMeta(deployer)})
	w.define(nil)
	inst := w.install(func(s *v1alpha1.ApplicationInstallationSpec) { s.ServiceAccountName = deployer })
	message := hub.AwaitReason(w.World, inst, v1alpha1.ForbiddenReason)
	assert.Contains(t, message, `User "`+w.User(deployer)+`" cannot list resource "secrets"`)
	assert.Contains(t, message, "bind it to a Role or ClusterRole")
	assert.Empty(t, w.releases("web"))
	w.bind("edit")
	hub.Reconcile(w.World, inst)
	hub.AwaitReady(w.World, inst)

	elsewhere := w.install2("elsewhere", func(s *v1alpha1.ApplicationInstallationSpec) {
		s.ServiceAccountName = deployer
		s.Namespace = &v1alpha1.TargetNamespace{Name: w.Namespace + "-new", Create: true}
	})
	assert.Contains(t, hub.AwaitReason(w.World, elsewhere, v1alpha1.ForbiddenReason), `cannot patch resource "namespaces"`)
	assert.False(t, w.Exists(&corev1.Namespace{}, w.Namespace+"-new"))
}

// install2 is install under another name.
func (w *world) install2(name string, change func(*v1alpha1.ApplicationInstallationSpec)) *v1alpha1.ApplicationInstallation {
	w.T.Helper()
	inst := &v1alpha1.ApplicationInstallation{ObjectMeta: objectMeta(name)}
	inst.Spec.ApplicationRef = v1alpha1.ApplicationReference{Name: w.Namespace, Version: "1.0.0"}
	change(&inst.Spec)
	w.Create(inst)
	return inst
}

// C60: without its account, nothing is installed, and what is installed is uninstalled once it is back,
// or another one is named.
func TestInstallation_waitsForItsAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.define(nil)
	inst := w.install(func(s *v1alpha1.ApplicationInstallationSpec) { s.ServiceAccountName = deployer })
	message := hub.AwaitReason(w.World, inst, v1alpha1.ServiceAccountNotFoundReason)
	assert.Contains(t, message, "ServiceAccount "+w.Namespace+"/"+deployer+", which the installation acts as, does not exist")
	w.addAccount()
	hub.Reconcile(w.World, inst)
	hub.AwaitReady(w.World, inst)

	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) {
		i.Spec.ServiceAccountName, i.Spec.ApplicationRef.Version = "", "1.1.0"
	})
	hub.AwaitReady(w.World, inst)
	assert.Equal(t, deployer, inst.Status.Release.ServiceAccountName, "it gains no rights by naming none")

	require.NoError(t, w.Client.Delete(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: deployer}}))
	require.NoError(t, w.Client.Delete(t.Context(), inst))
	message = hub.AwaitReason(w.World, inst, v1alpha1.UninstallFailedReason)
	assert.Contains(t, message, "does not exist")
	assert.Contains(t, message, "remove the finalizer "+v1alpha1.Finalizer)
	require.NotNil(t, w.peekDeployment("web"))
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { i.Spec.ServiceAccountName = "default" })
	w.AwaitGone(&v1alpha1.ApplicationInstallation{}, inst.Name)
	assert.Nil(t, w.peekDeployment("web"))
}

// C60
func TestInstallation_definitionRequiresAnAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addAccount()
	definition := w.define(nil)
	inst := hub.AwaitReady(w.World, w.install(nil))
	hub.Change(w.World, definition, func(d *v1alpha1.ApplicationDefinition) { d.Spec.RequireServiceAccount = true })
	message := hub.AwaitReason(w.World, inst, v1alpha1.ServiceAccountRequiredReason)
	assert.Contains(t, message, "spec.serviceAccountName")
	require.NotNil(t, w.peekDeployment("web"), "what is installed stays")
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { i.Spec.ServiceAccountName = deployer })
	hub.AwaitReady(w.World, inst)
	assert.Equal(t, deployer, inst.Status.Release.ServiceAccountName)
}

// C60: a kustomization is applied and deleted as the account.
func TestInstallation_kustomizesAsItsAccount(t *testing.T) {
	w := newWorld(t)
	w.addAccount()
	w.kustomizations(map[string]string{
		"1.0.0/kustomization.yaml": "resources: [all.yaml]\n",
		"1.0.0/all.yaml":           "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: built}\n",
	})
	began := w.mark()
	inst := hub.AwaitReady(w.World, w.install(func(s *v1alpha1.ApplicationInstallationSpec) { s.ServiceAccountName = deployer }))
	byAccount, byWaybill := w.written(began)
	assert.NotEmpty(t, byAccount)
	assert.NotContains(t, byAccount, "patch applications")
	for _, what := range byAccount {
		assert.NotContains(t, byWaybill, what)
	}
	require.NoError(t, w.Client.Delete(t.Context(), inst))
	w.AwaitGone(&v1alpha1.ApplicationInstallation{}, inst.Name)
	byAccount, byWaybill = w.written(began)
	assert.True(t, slices.ContainsFunc(byAccount, func(what string) bool { return what == "delete configmaps" || what == "delete deployments" }), "%v", byAccount)
	assert.Contains(t, byWaybill, "delete applications")
}
