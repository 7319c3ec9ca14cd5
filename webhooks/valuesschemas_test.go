package webhooks_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/render/values/schema"
)

// knows stores the schema of version v1.0.0 of a definition as a hub does.
func knows(t *testing.T, admin client.Client, d *v1alpha1.ApplicationDefinition, text string) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.DefaultSystemNamespace}}
	require.NoError(t, client.IgnoreAlreadyExists(admin.Create(t.Context(), ns)))
	encoded, err := (&schema.Bundle{Schema: json.RawMessage(text)}).Encode()
	require.NoError(t, err)
	packed, err := schema.Pack(encoded)
	require.NoError(t, err)
	kept := schema.ConfigMap(v1alpha1.DefaultSystemNamespace, d, map[string][]byte{schema.Digest(encoded): packed})
	require.NoError(t, admin.Create(t.Context(), kept))
	t.Cleanup(func() { _ = admin.Delete(afterwards(t), kept) })
	before := d.DeepCopy()
	d.Status.ValuesSchemas = []v1alpha1.ValuesSchema{{Version: "v1.0.0", Source: "s", Digest: schema.Digest(encoded)}}
	require.NoError(t, admin.Status().Patch(t.Context(), d, client.MergeFrom(before)))
}

func withValues(inst *v1alpha1.ApplicationInstallation, values string) *v1alpha1.ApplicationInstallation {
	inst.Spec.Values = &apiextensionsv1.JSON{Raw: []byte(values)}
	return inst
}

const valuesSchema = `{"additionalProperties": false, "required": ["host"], "properties": {"host": {"type": "string"},
	"replicaCount": {"type": "integer"}, "ports": {"items": {"maximum": 65535}}, "auth": {"properties": {"mode": {"enum": ["none", "basic"]}}}}}`

// K48, K49: values that the chart's schema refuses whatever else is set are refused when they are written,
// with the field; those that it may accept are not.
func TestInstallation_valuesFitTheSchema(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	def := definition(t, admin, nil)
	knows(t, admin, def, valuesSchema)
	ns := c.Namespace(t)

	bad := withValues(newInstallation(ns, def.Name, "v1.0.0"), `{"replicaCount": "x", "ports": [80, 70000], "replicas": 1}`)
	var err error
	require.Eventually(t, func() bool {
		try := bad.DeepCopy()
		if err = admin.Create(t.Context(), try); err == nil {
			require.NoError(t, admin.Delete(t.Context(), try)) // the webhook did not have the status yet
		}
		return err != nil
	}, patience, often)
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	of := " (by the schema of " + def.Name + ", version v1.0.0)"
	assert.ErrorContains(t, err, "spec.values.replicaCount: Invalid value: must be integer, not string"+of)
	assert.ErrorContains(t, err, "spec.values.ports[1]: Invalid value: must be at most 65535"+of)
	assert.ErrorContains(t, err, "spec.values.replicas: Invalid value: is not a value of the chart"+of)

	block := newInstallation(ns, def.Name, "v1.0.0")
	block.Spec.ValuesBlock = "# how\nauth:\n  mode: digest\n"
	assert.ErrorContains(t, admin.Create(t.Context(), block), `spec.valuesBlock.auth.mode: Invalid value: must be one of "none", "basic"`)

	good := withValues(newInstallation(ns, def.Name, "v1.0.0"), `{"replicaCount": 2}`)
	require.NoError(t, admin.Create(t.Context(), good), "host may come from valuesFrom")
	before := good.DeepCopy()
	withValues(good, `{"replicaCount": "2"}`)
	assert.ErrorContains(t, admin.Patch(t.Context(), good, client.MergeFrom(before)), "spec.values.replicaCount")

	unknown := withValues(newInstallation(ns, def.Name, "v1.1.0"), `{"replicaCount": "x"}`)
	unknown.Name = "unknown"
	require.NoError(t, admin.Create(t.Context(), unknown), "the schema of that version is not known")
	before = unknown.DeepCopy()
	unknown.Spec.ReconciliationInterval.Duration = 3600e9
	require.NoError(t, admin.Patch(t.Context(), unknown, client.MergeFrom(before)))
	before = unknown.DeepCopy()
	unknown.Spec.ApplicationRef.Version = "v1.0.0"
	assert.ErrorContains(t, admin.Patch(t.Context(), unknown, client.MergeFrom(before)), "spec.values.replicaCount", "a version that refuses them")
}

// K49: what was accepted before its schema was known can still be changed otherwise, and deleted.
func TestInstallation_valuesThatWereAcceptedStay(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	def := definition(t, admin, nil)
	inst := withValues(newInstallation(c.Namespace(t), def.Name, "v1.0.0"), `{"replicaCount": "x"}`)
	require.NoError(t, admin.Create(t.Context(), inst))
	knows(t, admin, def, valuesSchema)
	before := inst.DeepCopy()
	inst.Spec.ReconciliationInterval.Duration = 3600e9
	require.NoError(t, admin.Patch(t.Context(), inst, client.MergeFrom(before)))
	require.NoError(t, admin.Delete(t.Context(), inst))
}

// A schema that is gone, or is not the one that the definition names, is none.
func TestInstallation_valuesWithoutTheirSchema(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	def := definition(t, admin, nil)
	knows(t, admin, def, `{"properties": {"other": {"type": "integer"}}}`)
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.DefaultSystemNamespace, Name: schema.ConfigMapName(def.Name)}}
	require.NoError(t, admin.Get(t.Context(), client.ObjectKeyFromObject(kept), kept))
	forged, err := schema.Pack([]byte(`{"schema": false}`))
	require.NoError(t, err)
	for digest := range kept.BinaryData {
		kept.BinaryData[digest] = forged
	}
	require.NoError(t, admin.Update(t.Context(), kept))
	inst := withValues(newInstallation(c.Namespace(t), def.Name, "v1.0.0"), `{"other": "x"}`)
	require.NoError(t, admin.Create(t.Context(), inst), "it is not the one with that digest")
}
