package health_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/sync/health"
)

// confidential is an object whose data also stands in its metadata, where kubectl apply and
// field management write it down.
func confidential() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret",
		"metadata": map[string]any{
			"name":   "password",
			"labels": map[string]any{"team": "a"},
			"annotations": map[string]any{
				"note": "seen",
				"kubectl.kubernetes.io/last-applied-configuration": `{"data": {"password": "hunter2"}}`,
			},
			"managedFields": []any{map[string]any{"fieldsV1": map[string]any{"f:data": map[string]any{"f:hunter2": map[string]any{}}}}},
		},
		"data": map[string]any{"password": "hunter2"},
	}}
}

// C39: expressions see metadata, spec and status, and no copy of the data.
func TestExpression_seesNoData(t *testing.T) {
	for text, want := range map[string]health.Status{
		"metadata.name == 'password' && metadata.labels['team'] == 'a' && metadata.annotations['note'] == 'seen'": health.Current,
		"'kubectl.kubernetes.io/last-applied-configuration' in metadata.annotations":                              health.InProgress,
		"has(metadata.managedFields)": health.InProgress,
		"spec == {} && status == {}":  health.Current,
	} {
		t.Run(text, func(t *testing.T) {
			object := confidential()
			got, message := expression(t, text, "").Of(object)
			assert.Equal(t, want, got, message)
			assert.Equal(t, confidential(), object, "the object stays as it is")
		})
	}
}

// C39: what an evaluation fails by is not said with the values that it failed on.
func TestExpression_messagesHaveNoValues(t *testing.T) {
	for _, text := range []string{
		"metadata.labels[metadata.annotations['note']] == ''",
		"metadata.labels[metadata.annotations['kubectl.kubernetes.io/last-applied-configuration']] == ''",
		"int(metadata.annotations['note']) > 0",
		"timestamp(metadata.annotations['note']) > timestamp('2020-01-01T00:00:00Z')",
	} {
		status, message := expression(t, text, text).Of(confidential())
		assert.Equal(t, health.InProgress, status, text)
		assert.NotContains(t, message, "hunter2", text)
		assert.NotContains(t, message, "seen", text)
		assert.Contains(t, message, "healthExpressions have no answer", text)
	}
}

// Whoever writes an expression cannot hold up the objects of others.
func TestExpression_isLimited(t *testing.T) {
	loop := "[1,2,3,4,5,6,7,8,9,10].all(x, "
	for reason, text := range map[string]string{
		"many steps":   strings.Repeat(loop, 8) + "x > 0" + strings.Repeat(")", 8),
		"long strings": "'a'" + strings.Repeat(".replace('a', 'aaaaaaaaaa')", 7) + " == ''",
	} {
		t.Run(reason, func(t *testing.T) {
			e := expression(t, text, "")
			began := time.Now()
			status, message := e.Of(confidential())
			assert.Equal(t, health.InProgress, status)
			assert.Equal(t, "healthExpressions take too long to work out", message)
			assert.Less(t, time.Since(began), 10*time.Second)
		})
	}
}

func TestExpression_refuses(t *testing.T) {
	for _, text := range []string{"data.password == ''", "1 + 1", "status.", "status.phase"} {
		_, err := health.NewExpression("true", text)
		require.Error(t, err, text)
		_, err = health.NewExpression(text, "")
		require.Error(t, err, text)
	}
}

func expression(t *testing.T, current, failed string) *health.Expression {
	t.Helper()
	e, err := health.NewExpression(current, failed)
	require.NoError(t, err)
	return e
}
