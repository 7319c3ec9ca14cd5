package restore_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/data/restore"
)

const blogMarks = `labels: {apps.waybill.dev/owner-hash: x, apps.waybill.dev/release: blog, app.kubernetes.io/managed-by: Helm},
	annotations: {apps.waybill.dev/owner: hub-1/ApplicationInstallation/ns1/blog, meta.helm.sh/release-name: blog, meta.helm.sh/release-namespace: ns1}`

// blog is an application that an installation manages, beside what its users have made for it.
var blog = []string{
	`{apiVersion: apps.waybill.dev/v1alpha1, kind: Application, metadata: {name: blog, ` + blogMarks + `}, spec: {type: Blog, selector: {matchLabels: {apps.waybill.dev/release: blog}}}}`,
	`{apiVersion: apps.waybill.dev/v1alpha1, kind: ApplicationInstallation, metadata: {name: blog, labels: {apps.waybill.dev/provided: default},
		annotations: {apps.waybill.dev/owner: hub-1/GitSync/ns1/site, apps.waybill.dev/delivery: '{"definition":"wordpress","version":"1.2.3","method":"helm","namespace":"ns1"}'}},
		spec: {applicationRef: {name: wordpress, version: 1.2.4}, namespace: {name: ns1, create: true}, dependsOn: [{name: db}], beforeUpgrade: {snapshot: Try},
		valuesFrom: [{kind: Secret, name: blog-values}, {kind: ConfigMap, name: gone, optional: true}],
		values: {ingress: {host: blog.example.com}, auth: {existingSecret: blog-keys}, image: {repository: blog-keys}}}, status: {failures: 3}}`,
	`{apiVersion: v1, kind: Secret, metadata: {name: blog-values, labels: {apps.waybill.dev/values: protected}}}`,
	`{apiVersion: v1, kind: Secret, metadata: {name: blog-keys}}`,
	`{apiVersion: v1, kind: Secret, metadata: {name: blog-generated, ` + blogMarks + `}}`,
	`{apiVersion: v1, kind: Secret, type: helm.sh/release.v1, metadata: {name: sh.helm.release.v1.blog.v1}}`,
	`{apiVersion: v1, kind: ConfigMap, metadata: {name: blog, ` + blogMarks + `}}`,
	`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: blog-files, ` + blogMarks + `}, spec: {volumeName: pv-1, resources: {requests: {storage: 1Mi}}}}`,
	`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data-blog-0}, spec: {volumeName: pv-2, resources: {requests: {storage: 1Mi}}}}`,
	`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: scratch}, spec: {resources: {requests: {storage: 1Mi}}}}`,
	`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: blog, ` + blogMarks + `}, spec: {selector: {matchLabels: {app: blog}}, template: {spec: {
		containers: [{name: main, env: [{name: HOST, value: blog.example.com}]}], volumes: [{name: files, persistentVolumeClaim: {claimName: blog-files}}]}},
		volumeClaimTemplates: [{metadata: {name: data}}]}}`,
}

func captured(t *testing.T, texts ...string) []*unstructured.Unstructured {
	t.Helper()
	var list []*unstructured.Unstructured
	for _, text := range texts {
		list = append(list, inNamespace(object(t, text)))
	}
	return list
}

func kindsAndNames(objects []*unstructured.Unstructured) []string {
	var names []string
	for _, o := range objects {
		names = append(names, o.GetKind()+" "+o.GetName())
	}
	return names
}

// S29, S85, C18: what an installation manages is made as an installation of the same version and values, and
// beside it only what it does not render, and what it takes over.
func TestMake_installation(t *testing.T) {
	have := captured(t, blog...)
	rename := v1alpha1.ValueSubstitutionRule{Type: v1alpha1.SubstitutionName, OldValue: "blog", NewValue: "copy"}
	host := v1alpha1.ValueSubstitutionRule{Type: v1alpha1.SubstitutionValue, Key: "ingress.host", OldValue: "blog.", NewValue: "copy."}
	plan, err := restore.Make(have, restore.Options{
		Namespace: "ns2", Application: "copy", Install: true,
		Rules: []v1alpha1.ValueSubstitutionRule{rename, host, {Type: v1alpha1.SubstitutionLabel, OldValue: "blog", NewValue: "copy"}},
	})
	require.NoError(t, err)
	assert.Equal(t, []string{
		"PersistentVolumeClaim copy-files", "PersistentVolumeClaim data-copy-0", "PersistentVolumeClaim scratch",
		"Secret copy-values", "Secret copy-keys", "Secret copy-generated", "ApplicationInstallation copy",
	}, kindsAndNames(plan.All()))
	assert.Equal(t, captured(t, blog...), have, "another clone starts from the same")
	assert.EqualValues(t, 1, plan.Rules[1].Hits)

	want := object(t, `{apiVersion: apps.waybill.dev/v1alpha1, kind: ApplicationInstallation, metadata: {name: copy, namespace: ns2,
		annotations: {apps.waybill.dev/restored-claims: 'copy-files,data-copy-0'}},
		spec: {applicationRef: {name: wordpress, version: 1.2.3}, namespace: {name: ns2}, beforeUpgrade: {snapshot: Try}, valuesFrom: [{kind: Secret, name: copy-values}],
		values: {ingress: {host: copy.example.com}, auth: {existingSecret: copy-keys}, image: {repository: blog-keys}}}}`)
	assert.Equal(t, want.Object, plan.Last.Object)
	taken := plan.Claims[0]
	assert.Equal(t, "blog-files", taken.Source)
	assert.Equal(t, map[string]string{"meta.helm.sh/release-name": "copy", "meta.helm.sh/release-namespace": "ns2",
		"apps.waybill.dev/owner": "hub-1/ApplicationInstallation/ns2/copy"}, taken.GetAnnotations(), "Helm takes it over")
	assert.Equal(t, "Helm", taken.GetLabels()["app.kubernetes.io/managed-by"])
	assert.Equal(t, "copy", taken.GetLabels()["apps.waybill.dev/release"])
	assert.Len(t, taken.GetLabels()["apps.waybill.dev/owner-hash"], 40)
	assert.Empty(t, plan.Claims[1].GetAnnotations(), "a StatefulSet looks for it by its name alone")
	assert.Equal(t, v1alpha1.ValuesProtected, plan.Objects[0].GetLabels()[v1alpha1.ValuesLabel])
	assert.Equal(t, "wordpress", restore.Installed(have))
}

// C18: what Helm does not manage does not say so; and nothing depends on the order of the definitions.
func TestMake_installationOfKustomize(t *testing.T) {
	var texts []string
	for _, text := range slices.Backward(blog) {
		texts = append(texts, strings.NewReplacer(`"method":"helm"`, `"method":"kustomize"`, ", app.kubernetes.io/managed-by: Helm", "").Replace(text))
	}
	plan, err := restore.Make(captured(t, texts...), restore.Options{Namespace: "ns2", Application: "blog", Install: true})
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"apps.waybill.dev/owner": "hub-1/ApplicationInstallation/ns2/blog"}, get(t, plan, "PersistentVolumeClaim", "blog-files", "metadata", "annotations"))
	assert.NotContains(t, get(t, plan, "PersistentVolumeClaim", "blog-files", "metadata", "labels"), "app.kubernetes.io/managed-by")
	assert.Equal(t, "blog-files,data-blog-0", plan.Last.GetAnnotations()[v1alpha1.RestoredClaimsAnnotation])
}

// C35: who was not asked whether they may install gets plain objects, from which no installation takes values.
func TestMake_installationThatMayNotBe(t *testing.T) {
	plan, err := restore.Make(captured(t, blog...), restore.Options{Namespace: "ns2", Application: "blog"})
	require.NoError(t, err)
	assert.Equal(t, "Application", plan.Last.GetKind())
	names := kindsAndNames(plan.All())
	assert.Contains(t, names, "StatefulSet blog")
	assert.NotContains(t, names, "ApplicationInstallation blog")
	for _, o := range plan.All() {
		assert.Empty(t, o.GetLabels()[v1alpha1.ValuesLabel], o.GetName())
		assert.Empty(t, o.GetAnnotations()["meta.helm.sh/release-name"], o.GetName())
	}
}

// C35, S98: no rule makes a source of values of an object that was none in the snapshot, although those that were stay so.
func TestMake_rulesProtectNothing(t *testing.T) {
	have := captured(t, append(slices.Clone(blog), `{apiVersion: v1, kind: Secret, metadata: {name: mine, labels: {app: blog, apps.waybill.dev/values: x}}}`)...)
	for _, key := range []string{v1alpha1.ValuesLabel, ""} {
		plan, err := restore.Make(have, restore.Options{
			Namespace: "ns2", Application: "blog", Install: true,
			Rules: []v1alpha1.ValueSubstitutionRule{{Type: v1alpha1.SubstitutionLabel, Key: key, OldValue: "x", NewValue: v1alpha1.ValuesProtected, Match: v1alpha1.MatchExact}},
		})
		require.NoError(t, err)
		assert.NotContains(t, get(t, plan, "Secret", "mine", "metadata", "labels"), v1alpha1.ValuesLabel)
		assert.Contains(t, get(t, plan, "Secret", "blog-values", "metadata", "labels"), v1alpha1.ValuesLabel)
	}
}

func TestMake_installationRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, application string
		rule                v1alpha1.ValueSubstitutionRule
		want                string
	}{
		"what is rendered": {"the chart would set it again", "blog", v1alpha1.ValueSubstitutionRule{Type: v1alpha1.SubstitutionEnvVar, OldValue: "example.com", NewValue: "example.org"},
			"spec.valueSubstitutionRules[0]: type EnvVar cannot change StatefulSet.apps ns1/blog, which ApplicationInstallation.apps.waybill.dev ns1/blog renders: change what it is rendered from with a rule of type Value"},
		"an item":  {"charts know lists by their position", "blog", v1alpha1.ValueSubstitutionRule{Type: v1alpha1.SubstitutionValue, Key: "hosts", OldValue: "a"}, "an item of the list hosts"},
		"too long": {"Helm's limit", "a-name-that-has-more-characters-than-helm-has-room-for", v1alpha1.ValueSubstitutionRule{Type: v1alpha1.SubstitutionName, OldValue: "x", NewValue: "y"}, "at most 53 characters"},
	} {
		t.Run(name, func(t *testing.T) {
			have := captured(t, blog...)
			require.NoError(t, unstructured.SetNestedSlice(have[1].Object, []any{"a", "b"}, "spec", "values", "hosts"))
			_, err := restore.Make(have, restore.Options{Namespace: "ns2", Application: tc.application, Install: true, Rules: []v1alpha1.ValueSubstitutionRule{tc.rule}})
			require.ErrorContains(t, err, tc.want, tc.reason)
		})
	}
}

// A block of values keeps its comments unless something in it changes.
func TestMake_installationWithABlock(t *testing.T) {
	const block = "# where it is\ningress:\n  host: blog.example.com\n"
	for reason, tc := range map[string]struct {
		rules []v1alpha1.ValueSubstitutionRule
		want  map[string]any
	}{
		"nothing changes": {nil, map[string]any{"valuesBlock": block}},
		"a rule changes it": {[]v1alpha1.ValueSubstitutionRule{{Type: v1alpha1.SubstitutionValue, OldValue: "blog", NewValue: "copy"}},
			map[string]any{"values": map[string]any{"ingress": map[string]any{"host": "copy.example.com"}}}},
	} {
		have := captured(t, blog...)
		spec := have[1].Object["spec"].(map[string]any)
		delete(spec, "values")
		spec["valuesBlock"] = block
		plan, err := restore.Make(have, restore.Options{Namespace: "ns1", Application: "blog", Install: true, Rules: tc.rules})
		require.NoError(t, err)
		got := plan.Last.Object["spec"].(map[string]any)
		for _, field := range []string{"values", "valuesBlock"} {
			assert.Equal(t, tc.want[field], got[field], reason)
		}
		assert.Len(t, got["dependsOn"], 1, "it stays beside what it depends on")
	}
}

func TestUnused(t *testing.T) {
	var objects []*unstructured.Unstructured
	for _, text := range []string{
		`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: own}}`,
		`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {volumeClaimTemplates: [{metadata: {name: data}}], template: {spec: {volumes: [{persistentVolumeClaim: {claimName: logs}}]}}}}`,
		`{apiVersion: batch/v1, kind: CronJob, metadata: {name: job}, spec: {jobTemplate: {spec: {template: {spec: {volumes: [{persistentVolumeClaim: {claimName: dumps}}]}}}}}}`,
	} {
		o := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte(text), &o.Object))
		objects = append(objects, o)
	}
	assert.Equal(t, []string{"data-db", "data-db-00", "data-web-0", "other"},
		restore.Unused([]string{"own", "data-db-0", "data-db-12", "data-db", "data-db-00", "data-web-0", "logs", "dumps", "other"}, objects))
}

// S18: no Pod uses for now what a CronJob uses, a workload without replicas, or one with fewer.
func TestIdle_ofWorkloadsWithoutPods(t *testing.T) {
	workload := func(kind, name, replicas string) *unstructured.Unstructured {
		return object(t, `{apiVersion: apps/v1, kind: `+kind+`, metadata: {name: `+name+`}, spec: {`+replicas+`template: {spec: {volumes: [
			{name: own, persistentVolumeClaim: {claimName: `+name+`-own}}, {name: more, persistentVolumeClaim: {claimName: shared}}]}},
			volumeClaimTemplates: [{metadata: {name: data}}]}}`)
	}
	objects := []*unstructured.Unstructured{
		workload("StatefulSet", "one", ""), workload("StatefulSet", "late", "replicas: 2, ordinals: {start: 3}, "),
		workload("StatefulSet", "none", "replicas: 0, "), workload("Deployment", "down", "replicas: 0, "),
		object(t, `{apiVersion: batch/v1, kind: CronJob, metadata: {name: dump}, spec: {jobTemplate: {spec: {template: {spec: {volumes: [{name: dumps, persistentVolumeClaim: {claimName: dumps}}]}}}}}}`),
	}
	idle := []string{"data-one-1", "data-late-2", "data-late-5", "data-none-0", "none-own", "down-own", "dumps", "other"}
	used := []string{"data-one-0", "one-own", "shared", "data-late-3", "data-late-4", "late-own"}
	assert.ElementsMatch(t, idle, restore.Idle(slices.Concat(idle, used), objects))
}
