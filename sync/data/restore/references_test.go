package restore_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/data/restore"
)

func definitions(t *testing.T, texts ...string) []*unstructured.Unstructured {
	var list []*unstructured.Unstructured
	for _, text := range texts {
		list = append(list, object(t, text))
	}
	return list
}

// get returns a field of the object of a kind and name.
func get(t *testing.T, p *restore.Plan, kind, name string, path ...string) any {
	t.Helper()
	for _, o := range p.All() {
		if o.GetKind() == kind && o.GetName() == name {
			value, _, err := unstructured.NestedFieldNoCopy(o.Object, path...)
			require.NoError(t, err)
			return value
		}
	}
	require.Failf(t, "not made", "%s %s", kind, name)
	return nil
}

// S26, C18: references are found by the names in the snapshot, even if names are swapped.
func TestMake_swapsNames(t *testing.T) {
	deployment := func(name, account string) string {
		return `{apiVersion: apps/v1, kind: Deployment, metadata: {name: ` + name + `, namespace: ns1}, spec: {template: {spec: {serviceAccountName: ` + account + `,
			containers: [{name: c, envFrom: [{secretRef: {name: ` + account + `}}, {configMapRef: {name: blue}}]}]}}}}`
	}
	plan, err := restore.Make(definitions(t, application,
		deployment("one", "blue"), deployment("two", "green"),
		`{apiVersion: v1, kind: ServiceAccount, metadata: {name: blue, namespace: ns1}}`,
		`{apiVersion: v1, kind: ServiceAccount, metadata: {name: green, namespace: ns1}}`,
		`{apiVersion: v1, kind: Secret, metadata: {name: green, namespace: ns1}}`,
	), restore.Options{Namespace: "ns1", Application: "shop", Rules: []v1alpha1.ValueSubstitutionRule{
		{Type: v1alpha1.SubstitutionName, OldValue: "blue", NewValue: "x", Match: v1alpha1.MatchExact},
		{Type: v1alpha1.SubstitutionName, OldValue: "green", NewValue: "blue", Match: v1alpha1.MatchExact},
		{Type: v1alpha1.SubstitutionName, OldValue: "x", NewValue: "green", Match: v1alpha1.MatchExact},
	}})
	require.NoError(t, err)

	assert.Equal(t, "green", get(t, plan, "Deployment", "one", "spec", "template", "spec", "serviceAccountName"))
	assert.Equal(t, "blue", get(t, plan, "Deployment", "two", "spec", "template", "spec", "serviceAccountName"))
	container := func(name string) []any {
		list := get(t, plan, "Deployment", name, "spec", "template", "spec", "containers").([]any)
		return list[0].(map[string]any)["envFrom"].([]any)
	}
	config := map[string]any{"configMapRef": map[string]any{"name": "blue"}}
	assert.Equal(t, []any{map[string]any{"secretRef": map[string]any{"name": "blue"}}, config}, container("one"), "neither Secret nor ConfigMap blue belongs to the application")
	assert.Equal(t, []any{map[string]any{"secretRef": map[string]any{"name": "blue"}}, config}, container("two"))
}

// S26: the kind decides where one name is that of several objects.
func TestMake_kindsOfOneName(t *testing.T) {
	plan, err := restore.Make(definitions(t, application,
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: ns1, labels: {rename: "no"}}}`,
		`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: web, namespace: ns1, labels: {rename: "yes"}}}`,
		`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: one, namespace: ns1}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}`,
		`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: two, namespace: ns1}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: StatefulSet, name: web}}}`,
		`{apiVersion: v1, kind: List, metadata: {name: odd, namespace: ns1}}`,
	), restore.Options{Namespace: "ns1", Application: "shop", Rules: []v1alpha1.ValueSubstitutionRule{
		{Type: v1alpha1.SubstitutionName, OldValue: "web", NewValue: "www", Selector: selector("rename", "yes")},
	}})
	require.NoError(t, err)
	assert.Equal(t, "web", get(t, plan, "HorizontalPodAutoscaler", "one", "spec", "scaleTargetRef", "name"))
	assert.Equal(t, "www", get(t, plan, "HorizontalPodAutoscaler", "two", "spec", "scaleTargetRef", "name"))
}

// S26, C18: a reference that may mean either of two objects is left as it is, unless both have the same name now.
func TestMake_ambiguousReferences(t *testing.T) {
	const (
		tool    = `{apiVersion: tools.example.com/v1, kind: Widget, metadata: {name: w, namespace: ns1, labels: {of: tools}}}`
		toy     = `{apiVersion: toys.example.com/v1, kind: Widget, metadata: {name: w, namespace: ns1, labels: {of: toys}}}`
		anyOf   = `{kind: Widget, name: w}`
		ofTools = `{kind: Widget, apiGroup: tools.example.com, name: w}`
		ofToys  = `{kind: Widget, apiVersion: toys.example.com/v1, name: w}`
		nowhere = `{kind: Widget, group: games.example.com, name: w}`
	)
	renamed := func(to string, s *metav1.LabelSelector) v1alpha1.ValueSubstitutionRule {
		return v1alpha1.ValueSubstitutionRule{Type: v1alpha1.SubstitutionName, OldValue: "w", NewValue: to, Match: v1alpha1.MatchExact, Selector: s}
	}
	tools, toys := renamed("tool", selector("of", "tools")), renamed("toy", selector("of", "toys"))
	for name, tc := range map[string]struct {
		ref   string
		rules []v1alpha1.ValueSubstitutionRule
		want  string
	}{
		"only the first is renamed":             {anyOf, []v1alpha1.ValueSubstitutionRule{tools}, "w"},
		"only the second is renamed":            {anyOf, []v1alpha1.ValueSubstitutionRule{toys}, "w"},
		"both are renamed":                      {anyOf, []v1alpha1.ValueSubstitutionRule{tools, toys}, "w"},
		"both have the same name":               {anyOf, []v1alpha1.ValueSubstitutionRule{renamed("x", nil)}, "x"},
		"the group decides":                     {ofTools, []v1alpha1.ValueSubstitutionRule{tools, toys}, "tool"},
		"the group of the API version decides":  {ofToys, []v1alpha1.ValueSubstitutionRule{tools, toys}, "toy"},
		"none of the application is of a group": {nowhere, []v1alpha1.ValueSubstitutionRule{renamed("x", nil)}, "w"},
	} {
		t.Run(name, func(t *testing.T) {
			plan, err := restore.Make(definitions(t, application, tool, toy,
				`{apiVersion: example.com/v1, kind: Box, metadata: {name: box, namespace: ns1}, spec: {holds: `+tc.ref+`}}`,
			), restore.Options{Namespace: "ns1", Application: "shop", Rules: tc.rules})
			require.NoError(t, err)
			assert.Equal(t, tc.want, get(t, plan, "Box", "box", "spec", "holds", "name"))
		})
	}
}

// S26: a StatefulSet looks for its claims under names that it makes itself.
func TestMake_claimsOfStatefulSets(t *testing.T) {
	const set = `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, namespace: ns1}, spec: {volumeClaimTemplates: [{metadata: {name: data-db}}]}}`
	claim := func(name string) string {
		return `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: ` + name + `, namespace: ns1}}`
	}
	plan, err := restore.Make(definitions(t, application, set, claim("data-db-db-0"), claim("data-db-db-10"), claim("data-db-db-x"), claim("data-db-db-01")),
		restore.Options{Namespace: "ns1", Application: "shop", Rules: []v1alpha1.ValueSubstitutionRule{
			{Type: v1alpha1.SubstitutionName, OldValue: "db", NewValue: "pg"},
		}})
	require.NoError(t, err)
	names := map[string]string{}
	for _, c := range plan.Claims {
		names[c.Source] = c.GetName()
	}
	assert.Equal(t, map[string]string{
		"data-db-db-0": "data-db-pg-0", "data-db-db-10": "data-db-pg-10",
		"data-db-db-x": "data-pg-pg-x", "data-db-db-01": "data-pg-pg-01",
	}, names, "the name of the template is not that of an object; what no StatefulSet makes follows the rule")
}

// S26, C24: what selects the namespace of the snapshot by its name selects that of the clone; what selects others, or by
// other labels, stays.
func TestMake_namespaceSelectors(t *testing.T) {
	policy := func(selector string) string {
		return `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: web, namespace: ns1}, spec: {podSelector: {}, ingress: [{from: [{namespaceSelector: ` + selector + `}]}]}}`
	}
	for have, want := range map[string]string{
		`{matchLabels: {kubernetes.io/metadata.name: ns1}}`:                                               `{matchLabels: {kubernetes.io/metadata.name: ns2}}`,
		`{matchLabels: {kubernetes.io/metadata.name: other, team: ns1}}`:                                  `{matchLabels: {kubernetes.io/metadata.name: other, team: ns1}}`,
		`{matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [other, ns1]}]}`:    `{matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [other, ns2]}]}`,
		`{matchExpressions: [{key: team, operator: In, values: [ns1]}, {key: team, operator: Exists}]}`:   `{matchExpressions: [{key: team, operator: In, values: [ns1]}, {key: team, operator: Exists}]}`,
		`{matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [ns1, other]}]}`: `{matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [ns2, other]}]}`,
	} {
		plan, err := restore.Make(definitions(t, application, policy(have)), restore.Options{Namespace: "ns2", Application: "shop"})
		require.NoError(t, err)
		assert.Equal(t, object(t, policy(want)).Object["spec"], get(t, plan, "NetworkPolicy", "web", "spec"))
	}
}

// S9, S10, S99: the Application has the name that was asked for, whatever rules say.
func TestMake_application(t *testing.T) {
	plan, err := restore.Make(definitions(t, application,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns1, annotations: {kubernetes.io/application: shop}}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: ns1, annotations: {kubernetes.io/application: other}}}`,
	), restore.Options{Namespace: "ns2", Application: "clone", Rules: []v1alpha1.ValueSubstitutionRule{
		{Type: v1alpha1.SubstitutionName, OldValue: "shop", NewValue: "else"},
	}})
	require.NoError(t, err)
	assert.Equal(t, "clone", plan.Last.GetName())
	assert.Equal(t, "clone", get(t, plan, "ConfigMap", "a", "metadata", "annotations").(map[string]any)[v1alpha1.ApplicationAnnotation])
	assert.Equal(t, "other", get(t, plan, "ConfigMap", "b", "metadata", "annotations").(map[string]any)[v1alpha1.ApplicationAnnotation])
}

// S101: a clone of what an installation made is not selected by the Application of the original.
func TestMake_release(t *testing.T) {
	plan, err := restore.Make(definitions(t,
		`{apiVersion: apps.waybill.dev/v1alpha1, kind: Application, metadata: {name: shop, namespace: ns1}, spec: {type: Shop, selector: {matchLabels: {apps.waybill.dev/release: shop}}}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns1, labels: {apps.waybill.dev/release: shop}}}`,
	), restore.Options{Namespace: "ns1", Application: "clone", Rules: []v1alpha1.ValueSubstitutionRule{
		{Type: v1alpha1.SubstitutionName, OldValue: "a", NewValue: "b"},
	}})
	require.NoError(t, err)
	assert.Equal(t, "clone", get(t, plan, "ConfigMap", "b", "metadata", "labels").(map[string]any)[v1alpha1.ReleaseLabel])
	assert.Equal(t, map[string]any{v1alpha1.ReleaseLabel: "clone"}, get(t, plan, "Application", "clone", "spec", "selector", "matchLabels"))
	assert.Len(t, plan.Rules, 1, "that is no rule of the user")
}

// S33, S34
func TestMake_storageClasses(t *testing.T) {
	claim := func(class string) string {
		return `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: ns1}, spec: {` + class + `}}`
	}
	cases := map[string]struct {
		reason, claim string
		want          any
		fault         string
	}{
		"Kept":    {"it exists, mapped or not", claim("storageClassName: fast"), "fast", ""},
		"Mapped":  {"it does not exist", claim("storageClassName: gold"), "fast", ""},
		"None":    {"the API server takes the default", claim(""), nil, ""},
		"Missing": {"nothing is known in its place", claim("storageClassName: tin"), nil, `PersistentVolumeClaim ns1/data: StorageClass "tin" does not exist in this cluster, and the StatefulApplicationClass does not map it`},
		"BadMap":  {"its place is empty, too", claim("storageClassName: silver"), nil, `StorageClass "silver" does not exist in this cluster, nor does "gone"`},
		"Old":     {"the annotation counts more, and means the same", `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: ns1, annotations: {volume.beta.kubernetes.io/storage-class: gold}}}`, "fast", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plan, err := restore.Make(definitions(t, application, tc.claim), restore.Options{
				Namespace: "ns1", Application: "shop", StorageClasses: []string{"fast", "slow"},
				StorageClassMapping: map[string]string{"gold": "fast", "fast": "slow", "silver": "gone"},
			})
			if tc.fault != "" {
				assert.ErrorContains(t, err, tc.fault, tc.reason)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tc.want, get(t, plan, "PersistentVolumeClaim", "data", "spec", "storageClassName"), tc.reason)
			assert.Empty(t, get(t, plan, "PersistentVolumeClaim", "data", "metadata", "annotations"), "the field says it")
		})
	}
	template := `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, namespace: ns1}, spec: {volumeClaimTemplates: [{metadata: {name: data}, spec: {storageClassName: gold}}]}}`
	plan, err := restore.Make(definitions(t, application, template), restore.Options{
		Namespace: "ns1", Application: "shop", StorageClasses: []string{"fast"}, StorageClassMapping: map[string]string{"gold": "fast"},
	})
	require.NoError(t, err)
	templates := get(t, plan, "StatefulSet", "db", "spec", "volumeClaimTemplates").([]any)
	assert.Equal(t, map[string]any{"storageClassName": "fast"}, templates[0].(map[string]any)["spec"], "the next replica needs a claim, too")
}

// What kustomize cannot make out is an error that shows nothing of the objects.
func TestMake_ambiguousNamesTellNoSecrets(t *testing.T) {
	_, err := restore.Make(definitions(t, application,
		`{apiVersion: v1, kind: Secret, metadata: {name: keys, namespace: ns1, labels: {a: b}}, data: {k: czNjcjN0}}`,
		`{apiVersion: example.com/v1, kind: Secret, metadata: {name: keys, namespace: ns1}, spec: {k: czNjcjN0}}`,
		`{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: ns1}, spec: {containers: [{name: c, env: [{name: A, value: s3cr3t}], envFrom: [{secretRef: {name: keys}}]}]}}`,
	), restore.Options{Namespace: "ns1", Application: "shop", Rules: []v1alpha1.ValueSubstitutionRule{
		{Type: v1alpha1.SubstitutionName, OldValue: "keys", NewValue: "one", Selector: selector("a", "b")},
		{Type: v1alpha1.SubstitutionName, OldValue: "keys", NewValue: "two", Match: v1alpha1.MatchExact},
	}})
	if err != nil {
		assert.NotContains(t, err.Error(), "s3cr3t")
		assert.NotContains(t, err.Error(), "czNjcjN0")
	}
	require.ErrorContains(t, err, "kustomize cannot tell which objects refer to the renamed ones")
}
