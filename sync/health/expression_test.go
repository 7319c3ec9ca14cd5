package health_test

import (
	"fmt"
	"runtime"
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

// A user who writes an expression cannot hold up the objects of others.
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

// One call may take more than any number of steps: it is not made.
func TestExpression_makesNoHugeCall(t *testing.T) {
	list := make([]any, 2000)
	for i := range list {
		list[i] = fmt.Sprint(i)
	}
	object := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{
		"text": strings.Repeat("a", 1<<20), "list": list, "pattern": strings.Repeat("(a{1000})", 3000),
		"digits": strings.Repeat("%.999999e", 100), "one": strings.Repeat("a", 1<<20) + "1", "other": strings.Repeat("a", 1<<20) + "2",
	}}}
	many := "[" + strings.Repeat("0,", 300) + "0]"
	for reason, text := range map[string]string{
		"a terabyte":                          "status.text.replace('a', status.text) == ''",
		"a terabyte, between each letter":     "status.text.replace('', status.text) == ''",
		"two gigabytes":                       "status.list.join(status.text) == ''",
		"each %s is written out":              "'" + strings.Repeat("%s", 500) + "'.format([" + strings.Repeat("status.text,", 499) + "status.text]) == ''",
		"a list of one text, written out":     "'%s'.format([[1,2,3].map(x, status.text)]) == ''",
		"a large automaton for each letter":   "status.text.matches('(a{0,30}){0,30}b')",
		"a pattern that is not a constant":    "status.text.matches(status.text)",
		"each letter begins a long match":     "status.text.indexOf(status.text.substring(1) + 'b') > 0",
		"the same from the end":               "status.text.lastIndexOf('b' + status.text.substring(1)) > 0",
		"each item is compared with each":     "sets.contains(status.list, status.list)",
		"one text, again and again":           many + ".map(i, status.text).join('') == ''",
		"a million digits for each number":    "'" + strings.Repeat("%.999999f", 100) + "'.format([" + strings.Repeat("1.0,", 99) + "1.0]) == ''",
		"the same in a format of the object":  "status.digits.format([" + strings.Repeat("1.0,", 99) + "1.0]) == ''",
		"more digits than a number can say":   "(status.digits + '%.99999999999999999999f').format([1.0]) == ''",
		"a pattern that is written out":       "''.matches('" + strings.Repeat("(a{1000})", 400) + "')",
		"the same in a pattern of the object": "''.matches(status.pattern)",
		"long texts that end differently":     "sets.contains(" + many + ".map(i, status.one), " + many + ".map(i, status.other))",
		"a type that shows at run time only":  "dyn(status.text).replace('a', status.text) == ''",
	} {
		t.Run(reason, func(t *testing.T) {
			e := expression(t, text, "")
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			status, message := e.Of(object)
			runtime.ReadMemStats(&after)
			assert.Equal(t, health.InProgress, status)
			assert.Equal(t, "healthExpressions take too long to work out", message)
			assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20))
		})
	}
}

// What expressions are written for is far from the limits, and gives what CEL gives.
func TestExpression_callsFunctions(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"phase": "Running", "nodes": []any{"b", "a"}}}}
	for _, text := range []string{
		"status.phase.replace('ing', '') == 'Runn'", "status.phase.replace('n', 'm', 1) == 'Rumning'", "status.nodes.join() == 'ba'", "status.nodes.join(',') == 'b,a'",
		"'%s has %d'.format([status.phase, 2]) == 'Running has 2'", "status.phase.matches('^R.*g$')", "matches(status.phase, 'un')", "status.phase.indexOf('n') == 2",
		"status.phase.indexOf('n', 3) == 3", "status.phase.lastIndexOf('n') == 5", "status.phase.lastIndexOf('n', 3) == 3", "sets.contains(status.nodes, ['a'])",
		"sets.equivalent(status.nodes, ['a', 'b'])", "sets.intersects(status.nodes, ['a', 'c'])", "dyn(status.phase).replace('Run', '') == 'ning'",
		"'%.2f and %.3e'.format([1.0, 2.0]).startsWith('1.00 and 2.000')", "status.phase.matches('^[A-Za-z]([-a-z0-9]{0,61}[a-z0-9]){1,3}$')",
	} {
		status, message := expression(t, text, "").Of(object)
		assert.Equal(t, health.Current, status, "%s: %s", text, message)
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
