package webhooks_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// C60: what decides what is installed is changed by those who may install it, and by no others, however
// they may edit the namespace; what changes nothing of it is open to all.
func TestProtectedValues_areChangedByInstallers(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	def := definition(t, admin, nil)
	ns := c.Namespace(t)
	inst := newInstallation(ns, def.Name, "v1.0.0")
	inst.Spec.ValuesFrom = []v1alpha1.ValuesReference{{Kind: "ConfigMap", Name: "guarded"}, {Kind: "Secret", Name: "guarded"}}
	require.NoError(t, admin.Create(t.Context(), inst))
	edit := rule("", []string{"configmaps", "secrets"}, "*")
	tenant := c.user(t, ns, edit)
	installer := c.user(t, ns, edit, rule(v1alpha1.Group, []string{"applicationdefinitions"}, "install"))

	protect := map[string]string{v1alpha1.ValuesLabel: v1alpha1.ValuesProtected}
	for kind, existing := range map[string]func(map[string]string) client.Object{
		"ConfigMap": func(labels map[string]string) client.Object {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "guarded", Labels: labels}, Data: map[string]string{"values.yaml": "a: 1"}}
		},
		"Secret": func(labels map[string]string) client.Object {
			return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "guarded", Labels: labels}, Data: map[string][]byte{"values.yaml": []byte("hunter2")}}
		},
	} {
		for name, tc := range map[string]struct {
			reason  string
			labels  map[string]string
			change  func(client.Object)
			refused bool
		}{
			"content": {"that is what is guarded", protect, func(o client.Object) {
				if m, ok := o.(*corev1.ConfigMap); ok {
					m.Data["values.yaml"] = "extraDeploy: []"
					return
				}
				o.(*corev1.Secret).StringData = map[string]string{"values.yaml": "extraDeploy: []"}
			}, true},
			"binary content": {"a ConfigMap has two places for it", protect, func(o client.Object) {
				if m, ok := o.(*corev1.ConfigMap); ok {
					m.BinaryData = map[string][]byte{"more.yaml": {1}}
					return
				}
				o.(*corev1.Secret).Data["more.yaml"] = []byte{1}
			}, true},
			"label off":     {"without it anybody may write", protect, func(o client.Object) { o.SetLabels(nil) }, true},
			"label changed": {"just like that", protect, func(o client.Object) { o.SetLabels(map[string]string{v1alpha1.ValuesLabel: "no"}) }, true},
			"label on":      {"what is there already may be anything", nil, func(o client.Object) { o.SetLabels(protect) }, true},
			"annotation":    {"it decides nothing", protect, func(o client.Object) { o.SetAnnotations(map[string]string{"a": "b"}) }, false},
			"another label": {"neither does that", protect, func(o client.Object) {
				o.SetLabels(map[string]string{v1alpha1.ValuesLabel: v1alpha1.ValuesProtected, "a": "b"})
			}, false},
			"not protected": {"nobody goes by it", nil, func(o client.Object) { o.SetAnnotations(map[string]string{"a": "b"}) }, false},
		} {
			t.Run(kind+", "+name, func(t *testing.T) {
				obj := existing(tc.labels)
				require.NoError(t, admin.Create(t.Context(), obj))
				t.Cleanup(func() { require.NoError(t, tenant.Delete(afterwards(t), obj), "deletions are open to all users") })
				changed := obj.DeepCopyObject().(client.Object)
				tc.change(changed)
				err := tenant.Update(t.Context(), changed.DeepCopyObject().(client.Object))
				if !tc.refused {
					require.NoError(t, err, tc.reason)
					return
				}
				require.True(t, apierrors.IsForbidden(err), "%s: %v", tc.reason, err)
				assert.ErrorContains(t, err, `install applicationdefinitions.apps.waybill.dev "`+def.Name+`"`)
				assert.ErrorContains(t, err, "ApplicationInstallation shop takes values from it")
				assert.NotContains(t, err.Error(), "hunter2")
				require.NoError(t, installer.Update(t.Context(), changed))
			})
		}
	}
}

// C60: what is being deleted is read until it is gone, and its finalizers are not checked.
func TestProtectedValues_areGuardedToTheEnd(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	ns := c.Namespace(t)
	tenant := c.user(t, ns, rule("", []string{"configmaps"}, "*"))
	obj := protectedMap(ns, "held")
	obj.Finalizers = []string{"example.com/hold"}
	require.NoError(t, admin.Create(t.Context(), obj))
	require.NoError(t, tenant.Delete(t.Context(), obj))
	require.NoError(t, tenant.Get(t.Context(), client.ObjectKeyFromObject(obj), obj))
	changed := obj.DeepCopy()
	changed.Data["values.yaml"] = "extraDeploy: []"
	require.True(t, apierrors.IsForbidden(tenant.Update(t.Context(), changed)))
	obj.Finalizers = nil
	require.NoError(t, tenant.Update(t.Context(), obj))
}

// C60: an installation does not stop acting as its account by no longer naming it, and a definition may
// require one.
func TestInstallation_account(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	def := definition(t, admin, nil)
	strict := definition(t, admin, func(d *v1alpha1.ApplicationDefinition) { d.Spec.RequireServiceAccount = true })
	ns := c.Namespace(t)
	install := inCluster(in(v1alpha1.Group, "applicationdefinitions", "install"))

	inst := newInstallation(ns, def.Name, "v1.0.0")
	inst.Spec.ServiceAccountName = "deployer"
	require.NoError(t, admin.Create(t.Context(), inst))
	inst.Status.Application = &v1alpha1.ResolvedApplication{Name: def.Name, Version: "v1.0.0", Method: v1alpha1.MethodHelm, Namespace: ns, ServiceAccountName: "deployer"}
	require.NoError(t, admin.Status().Update(t.Context(), inst))
	inst.Spec.ServiceAccountName = ""
	err := c.with(t, ns, []permission{install}).Update(t.Context(), inst.DeepCopy())
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, `impersonate serviceaccounts "deployer"`)
	require.NoError(t, c.with(t, ns, []permission{install, in("", "serviceaccounts", "impersonate", "deployer")}).Update(t.Context(), inst))

	refused := newInstallation(ns, strict.Name, "v1.0.0")
	refused.Name = "strict"
	err = admin.Create(t.Context(), refused.DeepCopy())
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	require.ErrorContains(t, err, "spec.serviceAccountName")
	require.ErrorContains(t, err, "requires one")
	refused.Spec.ServiceAccountName = "deployer"
	require.NoError(t, admin.Create(t.Context(), refused))
}

// C60: a definition that is not known yet may name any account.
func TestInstallation_accountOfADefinitionToCome(t *testing.T) {
	c := admission(t)
	ns := c.Namespace(t)
	install := inCluster(in(v1alpha1.Group, "applicationdefinitions", "install"))
	inst := newInstallation(ns, "to-come", "v1.0.0")
	inst.Spec.Namespace = &v1alpha1.TargetNamespace{Name: ns}
	manager := client.FieldOwner(v1alpha1.FieldManager)
	err := c.with(t, ns, []permission{install}).Create(t.Context(), inst.DeepCopy(), manager)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, "impersonate serviceaccounts in namespace")
	require.ErrorContains(t, err, "set spec.serviceAccountName")
	require.NoError(t, c.with(t, ns, []permission{install, in("", "serviceaccounts", "impersonate")}).Create(t.Context(), inst, manager))
}
