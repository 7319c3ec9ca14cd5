package health_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/sync/health"
)

// recorded is an object in one of the states in which it is met.
type recorded struct {
	Want            health.Status
	Message, Reason string
	Object          map[string]any
}

func (r recorded) object(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	text, err := yaml.Marshal(r.Object)
	require.NoError(t, err)
	return parse(t, string(text))
}

func records(t *testing.T) []recorded {
	t.Helper()
	files, err := filepath.Glob("testdata/known/*.yaml")
	require.NoError(t, err)
	var all []recorded
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var some []recorded
		require.NoError(t, yaml.UnmarshalStrict(text, &some), file)
		all = append(all, some...)
	}
	return all
}

// What objects of the kinds look like while they are made, when they are well, and when they are not.
func TestKnown_recordedObjects(t *testing.T) {
	for i, r := range records(t) {
		object := r.object(t)
		t.Run(fmt.Sprintf("%s/%d", object.GetKind(), i), func(t *testing.T) {
			status, message := health.Of(object)
			assert.Equal(t, r.Want, status, "%s (%s)", message, r.Reason)
			if r.Message != "" {
				assert.Equal(t, r.Message, message)
			}
			if r.Want != health.Current {
				assert.NotEmpty(t, message)
			}
		})
	}
}

// Each rule has an object for each answer that it can give, and an answer for what is just created.
func TestKnown_everyRuleIsShown(t *testing.T) {
	shown := map[string]map[health.Status]bool{}
	for _, r := range records(t) {
		object := r.object(t)
		for _, rule := range health.Known() {
			of := object.GroupVersionKind().Group == rule.Group || strings.HasPrefix(rule.Group, "*") && strings.HasSuffix(object.GroupVersionKind().Group, rule.Group[1:])
			if of && (slices.Contains(rule.Kinds, object.GetKind()) || slices.Contains(rule.Kinds, "*")) {
				name := rule.Group + rule.Current + rule.Failed
				if shown[name] == nil {
					shown[name] = map[health.Status]bool{}
				}
				shown[name][r.Want] = true
			}
		}
	}
	kinds := 0
	for _, rule := range health.Known() {
		name := rule.Group + rule.Current + rule.Failed
		assert.True(t, shown[name][health.Current] && shown[name][health.InProgress], "%s %s: states without an object", rule.Group, rule.Kinds)
		assert.Equal(t, rule.Failed != "", shown[name][health.Failed], "%s %s: failed", rule.Group, rule.Kinds)
		for _, kind := range rule.Kinds {
			kinds++
			if strings.Contains(rule.Group, "*") {
				continue
			}
			status, _ := health.Of(parse(t, "{apiVersion: "+rule.Group+"/v1, kind: "+kind+", metadata: {name: a, generation: 1}, spec: {instances: 1}}"))
			assert.Equal(t, health.InProgress, status, "%s %s: nobody has looked at it yet", rule.Group, kind)
			status, _ = health.Of(parse(t, "{apiVersion: "+rule.Group+"/v1, kind: "+kind+`, metadata: {name: a, deletionTimestamp: "2026-01-01T00:00:00Z"}}`))
			assert.Equal(t, health.Terminating, status)
		}
	}
	assert.Greater(t, kinds, 30)
}

// What makes no sense is no success, and nothing that a hostile object says takes long.
func TestKnown_oddObjects(t *testing.T) {
	many := strings.TrimSuffix(strings.Repeat(`{type: a, status: "False"}, `, 20_000), ", ")
	for i, rule := range health.Known() {
		statuses := []string{"nonsense", "[]", "{conditions: 7}", "{conditions: [7, {}]}", "{parents: {}, phase: [], state: {}}"}
		if i < 2 { // the others loop in the same way
			statuses = append(statuses, "{conditions: ["+many+"]}")
		}
		for _, status := range statuses {
			group, kind := strings.Replace(rule.Group, "*", "a", 1), strings.Replace(rule.Kinds[0], "*", "Thing", 1)
			object := parse(t, "{apiVersion: "+group+"/v1, kind: "+kind+", metadata: {name: a, generation: 1}, spec: {forProvider: {}, instances: 1}, status: "+status+"}")
			got, message := health.Of(object)
			assert.Equal(t, health.InProgress, got, "%s %s with status %.40s: %s", group, kind, status, message)
		}
	}
}

// The page lists the kinds, and no others.
func TestKnown_isOnItsPage(t *testing.T) {
	page, err := os.ReadFile("../../api/docs/health.md")
	require.NoError(t, err)
	_, section, _ := strings.Cut(string(page), "\n## Kinds that are known\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var want []string
	for _, rule := range health.Known() {
		kinds, failed := strings.Join(rule.Kinds, ", "), "no"
		if slices.Contains(rule.Kinds, "*") {
			kinds = "all kinds"
		}
		if rule.Failed != "" {
			failed = "yes"
		}
		want = append(want, fmt.Sprintf("| `%s` | %s | %s |", rule.Group, kinds, failed))
	}
	var rows []string
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, "| `") {
			rows = append(rows, strings.TrimSpace(line))
		}
	}
	assert.Equal(t, want, rows)
}

// The example of the page can be used.
func TestKnown_theExampleOfThePageIsValid(t *testing.T) {
	page, err := os.ReadFile("../../api/docs/health.md")
	require.NoError(t, err)
	_, text, _ := strings.Cut(string(page), "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	var configMap struct{ Data map[string]string }
	require.NoError(t, yaml.Unmarshal([]byte(text), &configMap))
	require.Len(t, configMap.Data, 1)
	_, err = health.NewBook(configMap.Data)
	require.NoError(t, err)
}
