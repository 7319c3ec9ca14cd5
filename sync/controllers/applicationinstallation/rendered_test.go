package applicationinstallation_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// open defines an application that renders what its value extraDeploy says, as many public charts do.
func (w *world) open(change func(*v1alpha1.ApplicationDefinitionSpec)) *v1alpha1.ApplicationDefinition {
	w.T.Helper()
	return w.define(func(d *v1alpha1.ApplicationDefinitionSpec) {
		for i := range d.Versions {
			d.Versions[i].Template.Source.Helm.ChartName, d.Versions[i].Template.Source.Helm.ChartVersion = "open", chartVersion(w.T, "web")
		}
		if change != nil {
			change(d)
		}
	})
}

// extra are values by which the chart `open` creates a ConfigMap `extra`.
func extra(text string) string {
	return "extraDeploy:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: extra}\n  data: {text: '" + text + "'}\n"
}

// C60: values that a user can change who may not install are not used, and what is installed stays.
func TestInstallation_usesProtectedValuesOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.open(nil)
	vals := &corev1.ConfigMap{ObjectMeta: protectedMeta("vals"), Data: map[string]string{"values.yaml": extra("first")}}
	w.Create(vals)
	inst := hub.AwaitReady(w.World, w.install(func(s *v1alpha1.ApplicationInstallationSpec) {
		s.ValuesFrom = []v1alpha1.ValuesReference{{Kind: "ConfigMap", Name: "vals", Optional: true}}
	}))
	require.Equal(t, "first", w.page("extra"))
	assert.Equal(t, []string{"ConfigMap/vals"}, inst.Status.OptionalValues)

	vals.Labels, vals.Data["values.yaml"] = nil, extra("second")
	require.NoError(t, w.Client.Update(t.Context(), vals))
	message := hub.AwaitReason(w.World, inst, v1alpha1.UnprotectedValuesReason)
	assert.Contains(t, message, "spec.valuesFrom[0]: ConfigMap "+w.Namespace+"/vals lacks the label "+v1alpha1.ValuesLabel+": "+v1alpha1.ValuesProtected)
	assert.Contains(t, message, "spec.serviceAccountName")
	assert.Equal(t, "first", w.page("extra"), "what is installed stays")

	require.NoError(t, w.Client.Delete(t.Context(), vals))
	assert.Contains(t, hub.AwaitReason(w.World, inst, v1alpha1.InvalidValuesReason), "no longer exists", "nor is it left out")
	assert.Equal(t, "first", w.page("extra"))

	w.Create(&corev1.ConfigMap{ObjectMeta: protectedMeta("vals"), Data: map[string]string{"values.yaml": extra("third")}})
	hub.AwaitReady(w.World, inst)
	assert.Equal(t, "third", w.page("extra"))
}

// C60: templates look up nothing, unless with the rights of an account, or the definition allows it.
func TestInstallation_looksUp(t *testing.T) {
	t.Parallel()
	const lookup = `{{ (lookup "v1" "Secret" .Release.Namespace "victim").data | default "nothing" }}`
	for name, tc := range map[string]struct {
		reason  string
		account string
		allow   bool
		seen    bool
	}{
		"nobody":  {"whoever writes a value would read every Secret", "", false, false},
		"allowed": {"the publisher trusts who may install", "", true, true},
		"account": {"it may read Secrets of its namespace", deployer, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.addAccount()
			w.Create(&corev1.Secret{ObjectMeta: objectMeta("victim"), Data: map[string][]byte{"password": []byte("hunter2")}})
			w.open(func(d *v1alpha1.ApplicationDefinitionSpec) { d.AllowLookup = tc.allow })
			hub.AwaitReady(w.World, w.install(func(s *v1alpha1.ApplicationInstallationSpec) {
				s.ValuesBlock, s.ServiceAccountName = extra(lookup), tc.account
			}))
			if tc.seen {
				assert.Contains(t, w.page("extra"), "password", tc.reason)
				return
			}
			assert.Equal(t, "nothing", w.page("extra"), tc.reason)
		})
	}
}

// C60: an account reads no more by its templates than by itself.
func TestInstallation_looksUpWhatItsAccountMay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addAccount()
	w.open(nil)
	inst := w.install(func(s *v1alpha1.ApplicationInstallationSpec) {
		s.ServiceAccountName = deployer
		s.ValuesBlock = extra(`{{ (lookup "v1" "Secret" "kube-system" "any").data }}`)
	})
	message := hub.AwaitReason(w.World, inst, v1alpha1.ForbiddenReason)
	assert.Contains(t, message, `User "`+w.User(deployer)+`" cannot get resource "secrets"`)
}
