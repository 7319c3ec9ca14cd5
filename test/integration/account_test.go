package integration_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/program"
)

// platform is a tenant's cluster in which waybill-sync installs applications, with every right, and whose
// catalog has a chart that renders what its value extraDeploy says, as many public ones do.
type platform struct {
	*tenant
	definition *v1alpha1.ApplicationDefinition
	inst       *v1alpha1.ApplicationInstallation
	// owned is the ClusterRoleBinding that would make the tenant cluster-admin.
	owned string
}

func newPlatform(t *testing.T, args ...string) *platform {
	t.Helper()
	p := &platform{tenant: newTenant(t)}
	p.owned = p.namespace + "-owned"
	charts, err := env.StartHelmRepo(env.Access{})
	require.NoError(t, err)
	t.Cleanup(charts.Stop)
	_, err = charts.Push("../../examples/charts/web", func(c *chart.Chart) {
		c.Metadata.Name, c.Metadata.Version, c.Schema = "open", "1.0.0", nil
		c.Templates = []*chart.File{{Name: "templates/extra.yaml", Data: []byte("{{ range .Values.extraDeploy }}\n---\n{{ tpl (toYaml .) $ }}\n{{ end }}\n")}}
	})
	require.NoError(t, err)
	p.definition = &v1alpha1.ApplicationDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: p.namespace},
		Spec: v1alpha1.ApplicationDefinitionSpec{Versions: []v1alpha1.ApplicationVersion{{
			Version: "1.0.0", Template: &v1alpha1.ApplicationTemplate{Source: v1alpha1.ApplicationSource{
				Helm: &v1alpha1.HelmSource{URL: charts.URL(), ChartName: "open", ChartVersion: "1.0.0"},
			}},
		}}},
	}
	here := &v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Name: p.namespace, Namespace: v1alpha1.DefaultSystemNamespace}}
	require.NoError(t, p.admin.Create(t.Context(), here))
	require.NoError(t, p.admin.Create(t.Context(), p.definition))
	driver, err := program.Start(t.Context(), program.Options{
		Name: program.Sync, As: "driver", Bin: p.bin, Kubeconfig: p.cluster.KubeconfigFile(),
		Args: append([]string{"--controllers=driver,applicationdefinition", "--cache-dir=" + t.TempDir()}, args...),
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		p.remove(p.inst)
		p.remove(p.definition)
		p.remove(here)
		require.NoError(t, driver.Kill())
	})
	return p
}

// remove deletes an object after the test, and waits until it is gone.
func (p *platform) remove(o client.Object) {
	background := context.WithoutCancel(p.Context())
	require.NoError(p, client.IgnoreNotFound(p.admin.Delete(background, o)))
	require.Eventually(p, func() bool { return apierrors.IsNotFound(p.admin.Get(background, client.ObjectKeyFromObject(o), o)) }, limit, often)
}

// vals is the ConfigMap that the installation takes values from.
func (p *platform) vals(extra string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "vals"},
		Data:       map[string]string{"values.yaml": "extraDeploy:\n" + extra},
	}
}

// install has the platform's administrator install the application, with values from vals.
func (p *platform) install(change func(*v1alpha1.ApplicationInstallationSpec)) {
	p.Helper()
	p.inst = &v1alpha1.ApplicationInstallation{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "web"},
		Spec: v1alpha1.ApplicationInstallationSpec{
			ApplicationRef: v1alpha1.ApplicationReference{Name: p.definition.Name, Version: "1.0.0"},
			ValuesFrom:     []v1alpha1.ValuesReference{{Kind: "ConfigMap", Name: "vals"}},
		},
	}
	if change != nil {
		change(&p.inst.Spec)
	}
	require.NoError(p, p.admin.Create(p.Context(), p.inst))
}

// await waits until Ready has the reason, of a pass that began now or later, and returns its message.
func (p *platform) await(reason string) string {
	p.Helper()
	key, at := client.ObjectKeyFromObject(p.inst), time.Now().Format(time.RFC3339Nano)
	require.NoError(p, p.admin.Get(p.Context(), key, p.inst))
	before := p.inst.DeepCopy()
	p.inst.Annotations = map[string]string{v1alpha1.ReconcileAtAnnotation: at}
	require.NoError(p, p.admin.Patch(p.Context(), p.inst, client.MergeFrom(before)))
	require.Eventually(p, func() bool {
		require.NoError(p, p.admin.Get(p.Context(), key, p.inst))
		return p.inst.Status.LastHandledReconcileAt == at && conditions.GetReason(p.inst, v1alpha1.ReadyCondition) == reason
	}, limit, often, "Ready never has the reason %s: %+v", reason, p.inst)
	return conditions.GetMessage(p.inst, v1alpha1.ReadyCondition)
}

func (p *platform) extra(text string) string {
	return "- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: extra}\n  data: {text: '" + text + "'}\n"
}

func (p *platform) takeover() string {
	return fmt.Sprintf("- apiVersion: rbac.authorization.k8s.io/v1\n  kind: ClusterRoleBinding\n  metadata: {name: %s}\n"+
		"  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\n"+
		"  subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: %s-tenant}]\n", p.owned, p.namespace)
}

func (p *platform) assertNotOwned() {
	p.Helper()
	err := p.admin.Get(p.Context(), client.ObjectKey{Name: p.owned}, &rbacv1.ClusterRoleBinding{})
	assert.True(p, apierrors.IsNotFound(err), "the tenant is cluster-admin: %v", err)
}

func (p *platform) text() string {
	p.Helper()
	return p.configMap("extra").Data["text"]
}

// C60: who may edit a namespace, but not install, edits what an administrator's installation takes values
// from, in every way, and becomes no cluster-admin by it.
func TestTenant_isNoClusterAdminByValues(t *testing.T) {
	p := newPlatform(t)
	ctx := t.Context()
	require.NoError(t, p.Create(ctx, p.vals(p.extra("mine"))))
	p.install(nil)
	message := p.await(v1alpha1.UnprotectedValuesReason)
	assert.Contains(t, message, "ConfigMap "+p.namespace+"/vals lacks the label "+v1alpha1.ValuesLabel)

	labelled := p.vals(p.takeover())
	labelled.Labels = map[string]string{v1alpha1.ValuesLabel: v1alpha1.ValuesProtected}
	err := p.Update(ctx, labelled.DeepCopy())
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	assert.ErrorContains(t, err, `may not install applicationdefinitions.apps.waybill.dev "`+p.definition.Name+`"`)

	labelled.Data = p.vals(p.extra("theirs")).Data
	require.NoError(t, p.admin.Update(ctx, labelled))
	p.await(v1alpha1.SucceededReason)
	assert.Equal(t, "theirs", p.text())

	attack := labelled.DeepCopy()
	attack.Data = p.vals(p.takeover()).Data
	require.True(t, apierrors.IsForbidden(p.Update(ctx, attack.DeepCopy())), "the content")
	attack.Labels = nil
	require.True(t, apierrors.IsForbidden(p.Update(ctx, attack.DeepCopy())), "the label")
	require.NoError(t, p.Delete(ctx, labelled))
	attack.ResourceVersion, attack.UID = "", ""
	require.NoError(t, p.Create(ctx, attack))
	p.await(v1alpha1.UnprotectedValuesReason)
	p.assertNotOwned()
	assert.Equal(t, "theirs", p.text(), "what is installed stays")
}

// C60: a value that the chart passes to tpl reads no Secret, no matter who writes it.
func TestTenant_readsNoSecretByValues(t *testing.T) {
	p := newPlatform(t)
	ctx := t.Context()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.DefaultSystemNamespace, Name: p.namespace}, Data: map[string][]byte{"password": []byte("hunter2")}}
	require.NoError(t, p.admin.Create(ctx, secret))
	vals := p.vals(p.extra(fmt.Sprintf(`{{ (lookup "v1" "Secret" "%s" "%s").data }}`, secret.Namespace, secret.Name)))
	vals.Labels = map[string]string{v1alpha1.ValuesLabel: v1alpha1.ValuesProtected}
	require.NoError(t, p.admin.Create(ctx, vals))
	p.install(nil)
	p.await(v1alpha1.SucceededReason)
	assert.NotContains(t, p.text(), "password")
}

// C60: with --default-service-account, no installation has Waybill's rights: the same values come to
// nothing that the account may not do, and need no protection.
func TestTenant_isHeldToTheDefaultAccount(t *testing.T) {
	p := newPlatform(t, "--default-service-account=default")
	ctx := t.Context()
	require.NoError(t, p.admin.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "default"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: p.namespace, Name: "default"}},
	}))
	vals := p.vals(p.extra("mine"))
	require.NoError(t, p.Create(ctx, vals))
	p.install(nil)
	p.await(v1alpha1.SucceededReason)
	assert.Equal(t, "mine", p.text())

	vals.Data = p.vals(p.takeover()).Data
	require.NoError(t, p.Update(ctx, vals))
	message := p.await(v1alpha1.ForbiddenReason)
	assert.Contains(t, message, `User "system:serviceaccount:`+p.namespace+`:default" cannot`)
	assert.Contains(t, message, "clusterrolebindings")
	p.assertNotOwned()

	vals.Data = p.vals(p.extra(`{{ (lookup "v1" "Secret" "kube-system" "any").data }}`)).Data
	require.NoError(t, p.Update(ctx, vals))
	assert.True(t, strings.Contains(p.await(v1alpha1.ForbiddenReason), `cannot get resource "secrets"`))
}

// C60: who installs the chart names the account once, for those who act and those who admit.
func TestChart_namesTheDefaultAccount(t *testing.T) {
	objects, err := renderWaybill(t, map[string]any{"defaultServiceAccount": "deployer"})
	require.NoError(t, err)
	for _, name := range []string{"waybill-sync", "waybill-webhook"} {
		assert.Contains(t, container(t, find(t, objects, "Deployment", name))["args"], "--default-service-account=deployer", name)
	}
	_, err = renderWaybill(t, map[string]any{"defaultServiceAccount": "a:b"})
	require.ErrorContains(t, err, "defaultServiceAccount")
}
