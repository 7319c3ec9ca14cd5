package main

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/await"
	"waybill.dev/waybill/cmd/internal/fleet"
)

// S77, S92: a command that follows an object misses no step of it, also those that were over before the command
// began to watch.
func TestAwait_missesNoStep(t *testing.T) {
	cluster, c := user(t), clientOf(t, user(t))
	r := rollback(cluster.Namespace(t), "back")
	create(t, c, r)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(r)
	require.NoError(t, err)
	created := &unstructured.Unstructured{Object: content}
	created.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.ApplicationRollbackKind))
	phases := []string{"", string(v1alpha1.RollbackChecking), string(v1alpha1.RollbackSaving), string(v1alpha1.RollbackHolding), string(v1alpha1.RollbackCompleted)}
	for _, phase := range phases[1:] {
		rolling(t, c, r, v1alpha1.RollbackPhase(phase), nil)
	}
	target := fleet.NewHub("", cluster.RESTConfig())
	var seen []string
	last, err := await.Until(t.Context(), target, created, func(live *unstructured.Unstructured) bool {
		phase, _, _ := unstructured.NestedString(live.Object, "status", "phase")
		seen = append(seen, phase)
		return phase == string(v1alpha1.RollbackCompleted)
	})
	require.NoError(t, err)
	assert.Equal(t, phases, slices.Compact(seen))

	last, err = await.Until(t.Context(), target, last, func(*unstructured.Unstructured) bool { return true })
	require.NoError(t, err, "what is as wanted already is not waited for")
	require.NoError(t, c.Delete(t.Context(), r))
	_, err = await.Until(t.Context(), target, last, func(*unstructured.Unstructured) bool { return false })
	assert.EqualError(t, err, "was deleted meanwhile")
}
