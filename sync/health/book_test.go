package health_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"waybill.dev/waybill/sync/health"
)

const thing = "{apiVersion: example.com/v1, kind: Thing, metadata: {name: a}, status: {up: true, conditions: [{type: Ready, status: \"False\", message: starting}]}}"

// use goes by more rules until the end of the test.
func use(t *testing.T, files map[string]string) {
	t.Helper()
	book, err := health.NewBook(files)
	require.NoError(t, err)
	health.Use(book)
	t.Cleanup(func() { health.Use(nil) })
}

// An operator adds rules, and has the last word on kinds that Waybill, or kstatus, knows.
func TestUse_addedRules(t *testing.T) {
	before, _ := health.Of(parse(t, thing))
	assert.Equal(t, health.InProgress, before)
	known := "{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: a}}"
	use(t, map[string]string{
		"a.yaml": "- {group: example.com, kinds: [Thing], current: 'false'}\n",
		"b.yaml": "- {group: example.com, kinds: [Thing], current: status.up == true}\n- {group: cert-manager.io, kinds: [Certificate], current: 'true'}\n" +
			"- {group: '*.example.org', kinds: ['*'], failed: \"status.phase == 'Bad'\", current: 'true'}\n- {group: apps, kinds: [Deployment], current: 'true'}\n",
	})
	for text, want := range map[string]health.Status{
		thing: health.Current,
		known: health.Current,
		"{apiVersion: a.b.example.org/v1, kind: Any, metadata: {name: a}, status: {phase: Bad}}":                             health.Failed,
		"{apiVersion: a.b.example.org/v1, kind: Any, metadata: {name: a}}":                                                   health.Current,
		"{apiVersion: example.org/v1, kind: Any, metadata: {name: a}, status: {phase: Bad}}":                                 health.Current, // not of that domain's groups
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, generation: 1}, spec: {replicas: 3}}":                   health.Current,
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, generation: 2}, status: {observedGeneration: 1}}":       health.InProgress,
		"{apiVersion: cert-manager.io/v1, kind: CertificateRequest, metadata: {name: a}}":                                    health.InProgress, // still known
		"{apiVersion: example.com/v1, kind: Thing, metadata: {name: a, deletionTimestamp: \"2026-01-01T00:00:00Z\"}}":        health.Terminating,
		"{apiVersion: example.com/v1, kind: Thing, metadata: {name: a}, status: {}}":                                         health.InProgress,
		"{apiVersion: batch/v1, kind: Job, metadata: {name: a}, status: {conditions: [{type: Complete, status: \"True\"}]}}": health.Current,
	} {
		got, message := health.Of(parse(t, text))
		assert.Equal(t, want, got, "%s: %s", text, message)
	}
	health.Use(nil)
	after, _ := health.Of(parse(t, thing))
	assert.Equal(t, health.InProgress, after)
}

// A rule that cannot be used is named, and the others hold.
func TestNewBook_saysWhatIsWrong(t *testing.T) {
	good := "- {group: example.com, kinds: [Thing], current: status.up == true}\n"
	for reason, tc := range map[string]struct{ text, want string }{
		"no CEL":                      {good + "- {group: a.b, kinds: [A], current: 'status.('}", `a.yaml: rule 2 (A of group "a.b"): current: compile expression`},
		"no boolean":                  {good + "- {group: a.b, kinds: [A, B], current: status.phase + ''}", `(A, B of group "a.b"): current:`},
		"data is out of reach":        {good + "- {group: a.b, kinds: [A], current: 'true', failed: data.a == ''}", "failed: compile expression"},
		"nothing to go by":            {good + "- {group: a.b, kinds: [A]}", "current is missing"},
		"no kind":                     {good + "- {group: a.b, current: 'true'}", "kinds is missing"},
		"health is existence":         {good + "- {group: '', kinds: [Secret], current: 'true'}", "the health of a Secret cannot be told in another way"},
		"ours":                        {good + "- {group: apps.waybill.dev, kinds: [Application], current: 'true'}", "cannot be told in another way"},
		"all kinds of Kubernetes":     {good + "- {group: apps, kinds: ['*'], current: 'true'}", "only the kinds of a group with a domain"},
		"too long":                    {good + "- {group: a.b, kinds: [A], current: \"'" + strings.Repeat("a", 4096) + "' == ''\"}", "more than 4096 characters"},
		"too many":                    {good + strings.Repeat("- {group: a.b, kinds: [A], current: 'true'}\n", 500), "more than 500 rules: the rest is left out"},
		"a file that is no list":      {"kind: Thing", "a.yaml: not a list of rules"},
		"a field that there is not":   {"- {group: a.b, kinds: [A], current: 'true', healthy: 'true'}", "unknown field"},
		"a text that is no YAML":      {"- {", "a.yaml: "},
		"aliases that stand for much": {"a: &a [x, x, x, x, x, x, x, x, x]\n" + bomb(), "a.yaml: "},
	} {
		t.Run(reason, func(t *testing.T) {
			book, err := health.NewBook(map[string]string{"a.yaml": tc.text, "good.yaml": good})
			require.ErrorContains(t, err, tc.want)
			health.Use(book)
			t.Cleanup(func() { health.Use(nil) })
			if reason != "too many" {
				got, _ := health.Of(parse(t, thing))
				assert.Equal(t, health.Current, got, "the good one holds")
			}
		})
	}
}

// bomb is a YAML text of aliases of aliases.
func bomb() string {
	var text strings.Builder
	for i := range 20 {
		above := string(rune('a' + i))
		fmt.Fprintf(&text, "%c: &%c [*%s, *%s, *%s, *%s]\n", 'b'+i, 'b'+i, above, above, above, above)
	}
	return text.String()
}

// What holds answers is notified when they may not be right any more, and of which kinds.
func TestOnChange_tellsOfWhatChanged(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var kinds []string
	health.OnChange(ctx, func(changed func(schema.GroupKind) bool) {
		for _, gk := range []schema.GroupKind{{Group: "example.com", Kind: "Thing"}, {Group: "example.com", Kind: "Other"}, {Group: "cert-manager.io", Kind: "Certificate"}} {
			if changed(gk) {
				kinds = append(kinds, gk.Kind)
			}
		}
	})
	rule := map[string]string{"a.yaml": "- {group: example.com, kinds: [Thing], current: status.up == true}\n"}
	use(t, rule)
	assert.Equal(t, []string{"Thing"}, kinds)
	use(t, rule)
	assert.Len(t, kinds, 1, "it says the same as before")
	health.Use(nil)
	assert.Equal(t, []string{"Thing", "Thing"}, kinds)
	cancel()
	<-ctx.Done()
	health.Use(nil)
	assert.Len(t, kinds, 2)
}

// An expression that takes too long says nothing.
func TestUse_isLimited(t *testing.T) {
	loop := "[1,2,3,4,5,6,7,8,9,10].all(x, "
	use(t, map[string]string{"a.yaml": "- {group: example.com, kinds: [Thing], current: '" + strings.Repeat(loop, 8) + "x > 0" + strings.Repeat(")", 8) + "'}\n"})
	status, message := health.Of(parse(t, thing))
	assert.Equal(t, health.InProgress, status)
	assert.Equal(t, "the rule for its kind takes too long to work out", message)
}
