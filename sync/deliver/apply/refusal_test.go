package apply_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/sync/deliver/apply"
)

// P12: one bad manifest among good ones.
func TestRefusal_amongGoodOnes(t *testing.T) {
	f := newFixture(t)
	cases := map[string]struct {
		manifest, reason, message string
	}{
		"UnknownField": {
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: bad}, dat: {a: b}}",
			apply.ReasonInvalid, "failed to create typed patch object (" + f.namespace + "/bad; /v1, Kind=ConfigMap): .dat: field not declared in schema",
		},
		"WrongType": {
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: bad}, data: {a: 7}}",
			apply.ReasonInvalid, "failed to create typed patch object (" + f.namespace + "/bad; /v1, Kind=ConfigMap): .data.a: expected string, got &value.valueUnstructured{Value:7}",
		},
		"Validation": {
			"{apiVersion: v1, kind: Service, metadata: {name: bad}, spec: {ports: []}}",
			apply.ReasonInvalid, `Service "bad" is invalid: spec.ports: Required value`,
		},
		"BadName": {
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: Bad_Name}}",
			apply.ReasonInvalid, `ConfigMap "Bad_Name" is invalid`,
		},
		"LabelsAreNoMap": {
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: bad, labels: [a]}}",
			apply.ReasonInvalid, "cannot be applied: metadata: labels is not a map",
		},
		"NoName": {
			"{apiVersion: v1, kind: ConfigMap, metadata: {generateName: bad-}}",
			apply.ReasonInvalid, "cannot be applied: it lacks apiVersion, kind or metadata.name",
		},
		"SecretIsNotQuoted": {
			"{apiVersion: v1, kind: Secret, metadata: {name: bad}, stringData: {password: 12345}}",
			apply.ReasonInvalid, "cannot be applied: stringData.password is not a string",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bad := parse(t, tc.manifest)
			bad.File, bad.Line = "apps/bad.yaml", 7
			result := f.apply(nil, configMap(t, "good-a", name), bad, configMap(t, "good-b", name))
			require.NoError(t, result.Err)
			require.Len(t, result.Problems, 1)
			assert.Equal(t, tc.reason, result.Problems[0].Reason)
			assert.Contains(t, result.Problems[0].Message, tc.message)
			assert.Equal(t, "apps/bad.yaml", result.Problems[0].File)
			assert.Equal(t, 7, result.Problems[0].Line)
			assert.Equal(t, name, f.value("good-a"))
			assert.Equal(t, name, f.value("good-b"))

			again := f.apply(nil, configMap(t, "good-a", name), bad, configMap(t, "good-b", name))
			assert.Equal(t, result.Problems, again.Problems, "the message is the same each time")
		})
	}
}

// P14
func TestRefusal_immutableField(t *testing.T) {
	f := newFixture(t)
	first := f.mustApply(nil, parse(t, deploymentText))
	changed := parse(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 0
  selector: {matchLabels: {app: other}}
  template:
    metadata: {labels: {app: other}}
    spec: {containers: [{name: web, image: web}]}
`)
	result := f.apply(first.Inventory, changed)
	require.Len(t, result.Problems, 1)
	assert.Equal(t, apply.ReasonInvalid, result.Problems[0].Reason)
	assert.Equal(t, `Deployment.apps "web" is invalid: spec.selector: Invalid value: {"matchLabels":{"app":"other"}}: field is immutable; `+
		"change it back, or delete the object: it will be recreated; to have that done, annotate the manifest with apps.waybill.dev/force: \"true\"", result.Problems[0].Message)
	assert.Equal(t, first.Inventory, result.Inventory, "what could not be changed is not pruned")
	assert.NotNil(t, f.live("deployments", "web"))

	f.delete("deployments", "web")
	f.awaitNotice()
	f.mustApply(first.Inventory, changed)
}

// P12: what admission says is passed on word for word.
func TestRefusal_admissionPolicy(t *testing.T) {
	f := newFixture(t)
	policy := f.namespace
	f.mustApply(nil, parse(t, `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: `+policy+`}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: `+f.namespace+`}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}]
  validations: [{expression: "object.metadata.name != 'bad'", message: "no bad names here"}]
`), parse(t, `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: `+policy+`}
spec: {policyName: `+policy+`, validationActions: [Deny]}
`))
	t.Cleanup(func() { f.Delete(cleanup(t), f.owner, nil) })
	var result apply.Result
	second := f.request(nil, configMap(t, "bad", "one"), configMap(t, "good", "one"))
	second.Owner.Name = "second"
	defer f.Forget(second.Owner)
	require.Eventually(t, func() bool {
		_ = f.admin.dynamic.Resource(resource("configmaps")).Namespace(f.namespace).Delete(t.Context(), "bad", deleteNow)
		result = f.Apply(t.Context(), second)
		return len(result.Problems) > 0
	}, patience, often, "a policy takes effect late")
	assert.Equal(t, apply.ReasonRefused, result.Problems[0].Reason)
	assert.Equal(t, `configmaps "bad" is forbidden: ValidatingAdmissionPolicy '`+policy+`' with binding '`+policy+
		`' denied request: no bad names here`, result.Problems[0].Message)
	assert.Equal(t, "one", f.value("good"))
}

func TestRefusal_quota(t *testing.T) {
	f := newFixture(t)
	f.mustApply(nil, parse(t, "{apiVersion: v1, kind: ResourceQuota, metadata: {name: none}, spec: {hard: {services: 0}}}"))
	second := f.request(nil, parse(t, "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{port: 80}]}}"))
	second.Owner.Name = "second"
	defer f.Forget(second.Owner)
	var result apply.Result
	require.Eventually(t, func() bool {
		_ = f.admin.dynamic.Resource(resource("services")).Namespace(f.namespace).Delete(t.Context(), "web", deleteNow)
		result = f.Apply(t.Context(), second)
		return len(result.Problems) > 0 && result.Problems[0].Reason == apply.ReasonRefused
	}, patience, often, "the quota controller fills in the status first")
	assert.Contains(t, result.Problems[0].Message, "exceeded quota: none")
}

// A field that a CustomResourceDefinition does not know is not dropped in silence.
func TestRefusal_unknownFieldOfCustomKind(t *testing.T) {
	f := newFixture(t)
	crd, custom := definition(t, f)
	request := f.request(nil, crd, custom)
	f.until(request, clean)
	custom.Object["spec"] = map[string]any{"size": int64(1), "sise": int64(2)}
	result := f.Apply(t.Context(), request)
	require.Len(t, result.Problems, 1)
	assert.Equal(t, apply.ReasonInvalid, result.Problems[0].Reason)
	assert.Contains(t, result.Problems[0].Message, "spec.sise")

	custom.Object["spec"] = map[string]any{"size": int64(10)}
	result = f.Apply(t.Context(), request)
	require.Len(t, result.Problems, 1)
	assert.Contains(t, result.Problems[0].Message, "should be less than or equal to 9")
}
