package integration_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// C21: definitions of type OnDisk are on the volume that the values name, and only the role data has it.
func TestChart_volumeForDefinitions(t *testing.T) {
	claim := map[string]any{"persistentVolumeClaim": map[string]any{"claimName": "definitions"}}
	objects, err := renderWaybill(t, map[string]any{
		"roles": map[string]any{"data": true},
		"sync":  map[string]any{"perRole": true, "metadataVolume": claim},
	})
	require.NoError(t, err)
	for name, has := range map[string]bool{"waybill-data": true, "waybill-hub": false} {
		deployment := find(t, objects, "Deployment", name)
		runs := container(t, deployment)
		volumes, _, err := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "volumes")
		require.NoError(t, err)
		volume := map[string]any{"name": "definitions", "persistentVolumeClaim": claim["persistentVolumeClaim"]}
		mount := map[string]any{"name": "definitions", "mountPath": "/definitions"}
		if has {
			assert.Contains(t, runs["args"], "--metadata-directory=/definitions")
			assert.Contains(t, runs["volumeMounts"], mount)
			assert.Contains(t, volumes, volume)
			continue
		}
		assert.NotContains(t, runs["args"], "--metadata-directory=/definitions")
		assert.NotContains(t, volumes, volume)
	}
}

// Which kinds of others the role data may read is for who runs the cluster to say.
func TestChart_kindsOfOthers(t *testing.T) {
	objects, err := renderWaybill(t, map[string]any{"roles": map[string]any{"data": true}, "sync": map[string]any{"perRole": true}})
	require.NoError(t, err)
	role := find(t, objects, "ClusterRole", "waybill-data-kinds")
	selectors, _, err := unstructured.NestedSlice(role.Object, "aggregationRule", "clusterRoleSelectors")
	require.NoError(t, err)
	assert.Equal(t, []any{map[string]any{"matchLabels": map[string]any{"apps.waybill.dev/aggregate-to-data": "true"}}}, selectors)
	subjects, _, err := unstructured.NestedSlice(find(t, objects, "ClusterRoleBinding", "waybill-data-kinds").Object, "subjects")
	require.NoError(t, err)
	require.Len(t, subjects, 1)
	assert.Equal(t, "waybill-data", subjects[0].(map[string]any)["name"])
}

// C19: a restore that names no class has one.
func TestChart_defaultClass(t *testing.T) {
	objects, err := renderWaybill(t, map[string]any{"roles": map[string]any{"data": true}})
	require.NoError(t, err)
	class := find(t, objects, "StatefulApplicationClass", "waybill")
	assert.Equal(t, "true", class.GetAnnotations()["apps.waybill.dev/is-default-class"])
	assert.Equal(t, "data.waybill.dev", class.Object["handler"])
}
