package restore_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/data/restore"
)

const application = `{apiVersion: apps.waybill.dev/v1alpha1, kind: Application, metadata: {name: shop, namespace: ns1}, spec: {type: Shop, selector: {matchLabels: {app: shop}}}}`

// made applies rules to an application with one more object, and returns that object.
func made(t *testing.T, text string, rules ...v1alpha1.ValueSubstitutionRule) (*unstructured.Unstructured, *restore.Plan) {
	t.Helper()
	plan, err := restore.Make([]*unstructured.Unstructured{object(t, application), inNamespace(object(t, text))}, restore.Options{
		Namespace: "ns1", Application: "shop", Rules: rules,
	})
	require.NoError(t, err)
	return plan.All()[0], plan
}

// S19, S20, S21, S22, S23, S24, C18
func TestMake_rules(t *testing.T) {
	pod := func(env string) string {
		return `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {app: shop}}, spec: {template: {spec: {
			initContainers: [{name: i, env: [` + env + `]}], containers: [{name: c, env: [` + env + `], envFrom: [{configMapRef: {name: web}}]}]}}}}`
	}
	config := func(metadata string) string {
		return `{apiVersion: v1, kind: ConfigMap, metadata: {name: web, ` + metadata + `}}`
	}
	label, annotation, env := v1alpha1.SubstitutionLabel, v1alpha1.SubstitutionAnnotation, v1alpha1.SubstitutionEnvVar
	cases := map[string]struct {
		reason     string
		rule       v1alpha1.ValueSubstitutionRule
		have, want string
		hits       int32
	}{
		"Substring": {
			"every occurrence is replaced, and nothing of it is a pattern",
			v1alpha1.ValueSubstitutionRule{Type: annotation, OldValue: "a.b", NewValue: "$1"},
			config(`annotations: {x: a.b-a.b-acb}`), config(`annotations: {x: $1-$1-acb}`), 1,
		},
		"Exact": {
			"only whole values are replaced",
			v1alpha1.ValueSubstitutionRule{Type: label, OldValue: "web", NewValue: "www", Match: v1alpha1.MatchExact},
			config(`labels: {a: web, b: web-1}`), config(`labels: {a: www, b: web-1}`), 1,
		},
		"Regex": {
			"groups can be used",
			v1alpha1.ValueSubstitutionRule{Type: annotation, OldValue: `(\w+)\.ns1\.svc`, NewValue: "$1.ns2.svc", Match: v1alpha1.MatchRegex},
			config(`annotations: {x: "db.ns1.svc,mq.ns1.svc"}`), config(`annotations: {x: "db.ns2.svc,mq.ns2.svc"}`), 1,
		},
		"Key": {
			"other keys stay",
			v1alpha1.ValueSubstitutionRule{Type: label, Key: "a", OldValue: "web", NewValue: "www"},
			config(`labels: {a: web, b: web}`), config(`labels: {a: www, b: web}`), 1,
		},
		"Remove": {
			"keys whose value holds the old one go",
			v1alpha1.ValueSubstitutionRule{Type: annotation, OldValue: "secret"},
			config(`annotations: {x: a-secret-b, y: open}`), config(`annotations: {y: open}`), 1,
		},
		"RemoveVariable": {
			"in containers of both sorts",
			v1alpha1.ValueSubstitutionRule{Type: env, Key: "B", OldValue: "x"},
			pod(`{name: A, value: x}, {name: B, value: x}`), pod(`{name: A, value: x}`), 2,
		},
		"Variable": {
			"values that come from elsewhere, and names, stay",
			v1alpha1.ValueSubstitutionRule{Type: env, OldValue: "web", NewValue: "www"},
			pod(`{name: web, value: "http://web/"}, {name: B, valueFrom: {secretKeyRef: {name: web, key: web}}}`),
			pod(`{name: web, value: "http://www/"}, {name: B, valueFrom: {secretKeyRef: {name: web, key: web}}}`), 2,
		},
		"SelectorMatches": {
			"the object has the label in the snapshot",
			v1alpha1.ValueSubstitutionRule{Type: annotation, OldValue: "1", NewValue: "2", Selector: selector("tier", "db")},
			config(`labels: {tier: db}, annotations: {x: "1"}`), config(`labels: {tier: db}, annotations: {x: "2"}`), 1,
		},
		"SelectorDiffers": {
			"it is for other objects",
			v1alpha1.ValueSubstitutionRule{Type: annotation, OldValue: "1", NewValue: "2", Selector: selector("tier", "db")},
			config(`labels: {tier: web}, annotations: {x: "1"}`), config(`labels: {tier: web}, annotations: {x: "1"}`), 0,
		},
		"RemoveFromSelectors": {
			"the rest of each selector stays",
			v1alpha1.ValueSubstitutionRule{Type: label, Key: "track", OldValue: "canary"},
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {selector: {matchLabels: {app: web, track: canary},
				matchExpressions: [{key: track, operator: In, values: [canary]}, {key: track, operator: In, values: [canary, stable]}]}}}`,
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {selector: {matchLabels: {app: web},
				matchExpressions: [{key: track, operator: In, values: [stable]}]}}}`, 3,
		},
		"RemoveAllExpressions": {
			"what is left of the selector is enough",
			v1alpha1.ValueSubstitutionRule{Type: label, Key: "track", OldValue: "canary"},
			`{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web}, spec: {selector: {matchLabels: {app: web}, matchExpressions: [{key: track, operator: In, values: [canary]}]}}}`,
			`{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web}, spec: {selector: {matchLabels: {app: web}}}}`, 1,
		},
		"KeyOfExpressions": {
			"expressions about other labels stay",
			v1alpha1.ValueSubstitutionRule{Type: label, Key: "track", OldValue: "canary", NewValue: "blue"},
			`{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web}, spec: {selector: {matchExpressions: [{key: track, operator: In, values: [canary]}, {key: bird, operator: In, values: [canary]}]}}}`,
			`{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web}, spec: {selector: {matchExpressions: [{key: track, operator: In, values: [blue]}, {key: bird, operator: In, values: [canary]}]}}}`, 1,
		},
		"SelectorOfVolumes": {
			"labels of volumes are not those of the application",
			v1alpha1.ValueSubstitutionRule{Type: label, OldValue: "web", NewValue: "www"},
			`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: web, labels: {app: web}}, spec: {selector: {matchLabels: {app: web}}}}`,
			`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: web, labels: {app: www}}, spec: {selector: {matchLabels: {app: web}}}}`, 1,
		},
		"NodeSelector": {
			"labels of Nodes are not those of the application",
			v1alpha1.ValueSubstitutionRule{Type: label, OldValue: "web", NewValue: "www"},
			`{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {nodeSelector: {app: web}}}`,
			`{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {nodeSelector: {app: web}}}`, 0,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, plan := made(t, tc.have, tc.rule)
			assert.Equal(t, inNamespace(object(t, tc.want)).Object, got.Object, tc.reason)
			assert.Equal(t, []v1alpha1.RuleHits{{Rule: 0, Hits: tc.hits}}, plan.Rules)
		})
	}
}

// C18
func TestMake_rulesFollowOneAnother(t *testing.T) {
	got, plan := made(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {x: one}}}`,
		v1alpha1.ValueSubstitutionRule{Type: v1alpha1.SubstitutionLabel, OldValue: "one", NewValue: "two"},
		v1alpha1.ValueSubstitutionRule{Type: v1alpha1.SubstitutionLabel, OldValue: "two", NewValue: "three"},
		v1alpha1.ValueSubstitutionRule{Type: v1alpha1.SubstitutionLabel, OldValue: "one", NewValue: "four"})
	assert.Equal(t, map[string]string{"x": "three"}, got.GetLabels())
	assert.Equal(t, []v1alpha1.RuleHits{{Rule: 0, Hits: 1}, {Rule: 1, Hits: 1}, {Rule: 2}}, plan.Rules, "a rule without a hit is no error")
}

func TestMake_refuses(t *testing.T) {
	const service = `{apiVersion: v1, kind: Service, metadata: {name: web, namespace: ns1}, spec: {selector: {app: web}}}`
	const config = `{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: ns1, labels: {app: web}, annotations: {x: aaaaaaaaaa}}}`
	const other = `{apiVersion: v1, kind: ConfigMap, metadata: {name: www, namespace: ns1}}`
	const policy = `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: web, namespace: ns1}, spec: {podSelector: {matchLabels: {app: web}}}}`
	const expressions = `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web, namespace: ns1}, spec: {selector: {matchExpressions: [{key: app, operator: In, values: [web]}]}}}`
	long := strings.Repeat("x", 4096)
	growing := make([]v1alpha1.ValueSubstitutionRule, 100)
	for i := range growing {
		growing[i] = v1alpha1.ValueSubstitutionRule{Type: v1alpha1.SubstitutionAnnotation, OldValue: "a", NewValue: "aa"}
	}
	many := make([]string, 50)
	for i := range many {
		many[i] = fmt.Sprintf("k%d: a", i)
	}
	cases := map[string]struct {
		reason  string
		objects []string
		rules   []v1alpha1.ValueSubstitutionRule
		want    string
	}{
		"InvalidName": {
			"a Service cannot have every name", []string{service},
			[]v1alpha1.ValueSubstitutionRule{{Type: v1alpha1.SubstitutionName, OldValue: "web", NewValue: "1.web"}},
			`spec.valueSubstitutionRules[0]: Service ns1/web would be named "1.web", which is not valid: `,
		},
		"Collision": {
			"two objects cannot have one name", []string{config, other},
			[]v1alpha1.ValueSubstitutionRule{{Type: v1alpha1.SubstitutionName, OldValue: "web", NewValue: "www"}},
			`spec.valueSubstitutionRules[0]: ConfigMap ns1/web and ConfigMap ns1/www would both be named "www"`,
		},
		"CollisionOfClaims": {
			"the rule that names the StatefulSet names its claims",
			[]string{
				`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, namespace: ns1}, spec: {volumeClaimTemplates: [{metadata: {name: data}}]}}`,
				`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data-db-0, namespace: ns1}}`,
				`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data-pg-0, namespace: ns1}}`,
			},
			[]v1alpha1.ValueSubstitutionRule{{Type: v1alpha1.SubstitutionName, OldValue: "db", NewValue: "pg", Match: v1alpha1.MatchExact}},
			`spec.valueSubstitutionRules[0]: PersistentVolumeClaim ns1/data-db-0 and PersistentVolumeClaim ns1/data-pg-0 would both be named "data-pg-0"`,
		},
		"InvalidLabel": {
			"the API server would refuse it", []string{config},
			[]v1alpha1.ValueSubstitutionRule{{Type: v1alpha1.SubstitutionLabel, OldValue: "web", NewValue: "not valid"}},
			`spec.valueSubstitutionRules[0]: label app of ConfigMap ns1/web would be "not valid", which is not valid: `,
		},
		"EmptySelector": {
			"a Service without selector gets no Pods", []string{service},
			[]v1alpha1.ValueSubstitutionRule{{Type: v1alpha1.SubstitutionLabel, OldValue: "web"}},
			`spec.valueSubstitutionRules[0]: it leaves nothing in spec.selector of Service ns1/web, which would then select everything`,
		},
		"EmptyPolicy": {
			"it would isolate all Pods of the namespace", []string{policy},
			[]v1alpha1.ValueSubstitutionRule{{Type: v1alpha1.SubstitutionLabel, OldValue: "web"}},
			`it leaves nothing in spec.podSelector of NetworkPolicy.networking.k8s.io ns1/web`,
		},
		"EmptyExpressions": {
			"it would protect all Pods of the namespace", []string{expressions},
			[]v1alpha1.ValueSubstitutionRule{{Type: v1alpha1.SubstitutionLabel, OldValue: "web"}},
			`it leaves nothing in spec.selector of PodDisruptionBudget.policy ns1/web`,
		},
		"Pattern": {
			"it names the field", []string{config},
			[]v1alpha1.ValueSubstitutionRule{{Type: v1alpha1.SubstitutionLabel, OldValue: "(", Match: v1alpha1.MatchRegex}},
			`spec.valueSubstitutionRules[0].oldValue: error parsing regexp: `,
		},
		"Growth": {
			"rules that feed one another would fill the memory", []string{config}, growing,
			`: the new values are too large`,
		},
		"GrowthTogether": {
			"values that are small enough each may be too many",
			[]string{`{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: ns1, annotations: {` + strings.Join(many, ", ") + `}}}`},
			[]v1alpha1.ValueSubstitutionRule{{Type: v1alpha1.SubstitutionAnnotation, OldValue: "a", NewValue: strings.Repeat("x", 200<<10)}},
			`spec.valueSubstitutionRules[0]: the new values are too large`,
		},
		"GrowthOfPattern": {
			"so would a pattern that matches everywhere",
			[]string{`{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: ns1, annotations: {x: "` + long + `"}}}`},
			[]v1alpha1.ValueSubstitutionRule{{Type: v1alpha1.SubstitutionAnnotation, OldValue: ".?", NewValue: long, Match: v1alpha1.MatchRegex}},
			`spec.valueSubstitutionRules[0]: the new values are too large`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			definitions := []*unstructured.Unstructured{object(t, application)}
			for _, text := range tc.objects {
				definitions = append(definitions, object(t, text))
			}
			_, err := restore.Make(definitions, restore.Options{Namespace: "ns1", Application: "shop", Rules: tc.rules})
			assert.ErrorContains(t, err, tc.want, tc.reason)
		})
	}
	_, err := restore.Make(nil, restore.Options{})
	assert.ErrorIs(t, err, restore.ErrNoApplication)
}

// C18: a name that the API server has accepted, by rules of its own, is no fault of rules.
func TestMake_keepsOddNames(t *testing.T) {
	plan, err := restore.Make(definitions(t, application, `{apiVersion: v1, kind: Service, metadata: {name: 1web, namespace: ns1}}`), restore.Options{
		Namespace: "ns1", Application: "shop", Rules: []v1alpha1.ValueSubstitutionRule{{Type: v1alpha1.SubstitutionName, OldValue: "x", NewValue: "y"}},
	})
	require.NoError(t, err)
	assert.Equal(t, "1web", plan.All()[0].GetName())
}

// C18: a value may have 256 KiB, whichever way it comes to be.
func TestMake_largestValue(t *testing.T) {
	const most = 256 << 10
	for _, match := range []v1alpha1.SubstitutionMatch{v1alpha1.MatchSubstring, v1alpha1.MatchRegex} {
		for size, fault := range map[int]string{most: "", most + 1: "spec.valueSubstitutionRules[0]: the new values are too large"} {
			_, err := restore.Make(definitions(t, application, `{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: ns1, annotations: {x: ab-}}}`), restore.Options{
				Namespace: "ns1", Application: "shop", Rules: []v1alpha1.ValueSubstitutionRule{
					{Type: v1alpha1.SubstitutionAnnotation, OldValue: "b", NewValue: strings.Repeat("x", size-2), Match: match},
				},
			})
			if fault == "" {
				assert.NoError(t, err, "%s, %d bytes", match, size)
			} else {
				assert.ErrorContains(t, err, fault, "%s, %d bytes", match, size)
			}
		}
	}
}

// C18: what rules take away is no reason for others to add more.
func TestMake_growthIsNotPaidBack(t *testing.T) {
	config, annotations := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: ns1}}`), map[string]string{}
	large := strings.Repeat("x", 200<<10)
	for i := range 45 {
		annotations[fmt.Sprintf("k%d", i)] = large
	}
	config.SetAnnotations(annotations)
	rule := func(from, to string) v1alpha1.ValueSubstitutionRule {
		return v1alpha1.ValueSubstitutionRule{Type: v1alpha1.SubstitutionAnnotation, OldValue: from, NewValue: to, Match: v1alpha1.MatchExact}
	}
	_, err := restore.Make([]*unstructured.Unstructured{object(t, application), config}, restore.Options{
		Namespace: "ns1", Application: "shop", Rules: []v1alpha1.ValueSubstitutionRule{rule(large, "a"), rule("a", large)},
	})
	assert.ErrorContains(t, err, "spec.valueSubstitutionRules[1]: the new values are too large")
}

func inNamespace(o *unstructured.Unstructured) *unstructured.Unstructured {
	o.SetNamespace("ns1")
	return o
}

func selector(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}
