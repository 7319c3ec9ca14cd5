package kustomize

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"waybill.dev/waybill/sync/manifest"
)

// Generators and patches can leave something that only looks like an object.
func TestObject_isOneWithKindAndName(t *testing.T) {
	v := &view{top: "app/kustomization.yaml", limits: Limits{}.orDefault()}
	for name, text := range map[string]string{
		"NoKind": "{apiVersion: v1, metadata: {name: a}}",
		"NoName": "{apiVersion: v1, kind: ConfigMap, metadata: {labels: {a: b}}}",
		"SOPS":   "{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {a: 'ENC[x]'}, sops: {mac: 'ENC[x]'}}",
	} {
		_, problem := v.object(&resource.Resource{RNode: *yaml.MustParse(text)})
		if assert.NotNil(t, problem, name) {
			assert.Equal(t, manifest.ReasonInvalidManifest, problem.Reason, name)
			assert.Equal(t, "app/kustomization.yaml", problem.File, name)
		}
	}
	object, problem := v.object(&resource.Resource{RNode: *yaml.MustParse("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")})
	require.Nil(t, problem)
	assert.Equal(t, "a", object.GetName())
}
