package health_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/sync/health"
)

// K9: a condition on another object sees its parts as self, and no field that is hidden of it.
func TestCondition_seesAnObject(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "db", "generation": int64(2)},
		"spec":     map[string]any{"values": map[string]any{"password": "hunter2"}, "version": "1.2.0"},
		"status":   map[string]any{"observedGeneration": int64(2), "conditions": []any{map[string]any{"type": "Installed", "status": "True"}}},
		"data":     map[string]any{"password": "hunter2"},
	}}
	for text, c := range map[string]struct {
		met bool
		err string
	}{
		"self.metadata.name == 'db'":                                                    {met: true},
		"self.status.observedGeneration == self.metadata.generation":                    {met: true},
		"self.status.conditions.exists(c, c.type == 'Installed' && c.status == 'True')": {met: true},
		"self.spec.version.startsWith('2.')":                                            {},
		"has(self.spec.values)":                                                         {},
		"has(self.data)":                                                                {},
		"self.spec.values.password == 'hunter2'":                                        {err: "has no answer"},
		"self.status.gone == 1":                                                         {err: "has no answer"},
		strings.Repeat("[1,2,3,4,5,6,7,8,9,10].all(x, ", 8) + "x > 0" + strings.Repeat(")", 8): {err: "takes too long"},
	} {
		t.Run(text, func(t *testing.T) {
			condition, err := health.NewCondition(text)
			require.NoError(t, err)
			met, err := condition.Of(object, "values")
			assert.Equal(t, c.met, met)
			if c.err == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.err)
			assert.NotContains(t, err.Error(), "hunter2")
		})
	}
	assert.Contains(t, object.Object["spec"], "values", "the object stays as it is")
	for _, text := range []string{"metadata.name == ''", "self.status", "1 + 1", "self."} {
		_, err := health.NewCondition(text)
		require.Error(t, err, text)
	}
}
