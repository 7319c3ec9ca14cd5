package apply_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/manifest"
)

// immutable secret: its type cannot be changed.
func secretOf(t testing.TB, kind string) manifest.Object {
	return parse(t, "{apiVersion: v1, kind: Secret, metadata: {name: token}, type: "+kind+"}")
}

const migrateText = `
apiVersion: batch/v1
kind: Job
metadata: {name: migrate}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: migrate, image: IMAGE}]
`

func migrate(t testing.TB, image string) manifest.Object {
	return parse(t, strings.ReplaceAll(migrateText, "IMAGE", image))
}

func (f *fixture) uid(resource schema.GroupVersionResource, name string) string {
	f.t.Helper()
	live, err := f.admin.dynamic.Resource(resource).Namespace(f.namespace).Get(f.t.Context(), name, metav1.GetOptions{})
	require.NoError(f.t, err)
	return string(live.GetUID())
}

var jobs = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}

// C66, P14: what cannot be changed in place is created again, once, if that is asked for.
func TestForce_job(t *testing.T) {
	f := newFixture(t)
	first := f.mustApply(nil, migrate(t, "one"))
	before := f.uid(jobs, "migrate")

	refused := f.apply(first.Inventory, migrate(t, "two"))
	require.Len(t, refused.Problems, 1, "force was not requested")
	assert.Equal(t, before, f.uid(jobs, "migrate"))

	request := f.request(first.Inventory, migrate(t, "two"))
	request.Force = true
	recreated := f.Apply(t.Context(), request)
	require.NotEmpty(t, recreated.Changes)
	assert.Equal(t, apply.Recreated, recreated.Changes[0].Action)
	assert.Empty(t, recreated.Problems)
	f.until(request, clean)
	after := f.uid(jobs, "migrate")
	assert.NotEqual(t, before, after)

	requireClean(t, f.Apply(t.Context(), request))
	assert.Equal(t, after, f.uid(jobs, "migrate"), "it is as it should be")
}

// C66: never what holds data, what is not ours, or what the API server would refuse as a new object too.
func TestForce_whatStays(t *testing.T) {
	claim := func(size string) manifest.Object {
		return parse(t, "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {accessModes: ["+size+"], resources: {requests: {storage: 1Gi}}}}")
	}
	web := func(retention, app string) manifest.Object {
		return parse(t, `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web}
spec:
  replicas: 0
  serviceName: `+app+`
  `+retention+`
  selector: {matchLabels: {app: `+app+`}}
  template:
    metadata: {labels: {app: `+app+`}}
    spec: {containers: [{name: web, image: web}]}
`)
	}
	marked := func(o manifest.Object, key, value string) manifest.Object {
		o.SetAnnotations(map[string]string{key: value})
		return o
	}
	cases := map[string]struct {
		reason        string
		before, after manifest.Object
		says          string
	}{
		"Claim":              {"its volume would go", claim("ReadWriteOnce"), claim("ReadWriteMany"), "spec is immutable after creation"},
		"Annotated claim":    {"whoever asks", claim("ReadWriteOnce"), marked(claim("ReadWriteMany"), v1alpha1.ForceAnnotation, "true"), "spec is immutable after creation"},
		"Claims that go":     {"they would go with it", web("persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete}", "a"), web("podManagementPolicy: Parallel", "a"), "its claims go with it"},
		"Pods that are lost": {"nobody would own them", web("", "a"), web("", "b"), "it would not find its Pods again"},
		"Kept":               {"it is not to be deleted", secretOf(t, "a"), marked(secretOf(t, "b"), v1alpha1.PruneAnnotation, "disabled"), "field is immutable"},
		"Opted out":          {"the manifest wins", secretOf(t, "a"), marked(secretOf(t, "b"), v1alpha1.ForceAnnotation, "false"), "field is immutable"},
		"Invalid":            {"it could not be created", secretOf(t, "a"), secretOf(t, "kubernetes.io/tls"), "it is not recreated: creating it would fail: Secret \"token-dry-run\" is invalid: "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			first := f.mustApply(nil, tc.before)
			f.requests.take()
			request := f.request(first.Inventory, tc.after)
			request.Force = true
			for range 2 {
				result := f.Apply(t.Context(), request)
				require.Len(t, result.Problems, 1, tc.reason)
				assert.Contains(t, result.Problems[0].Message, tc.says)
				assert.Equal(t, first.Inventory, result.Inventory)
			}
			for _, made := range f.requests.take() {
				assert.NotContains(t, made, "DELETE", tc.reason)
			}
		})
	}
}

// C66: an object that was taken over is not deleted for the sake of a field.
func TestForce_foreignObject(t *testing.T) {
	f := newFixture(t)
	f.create("secrets", secretOf(t, "a"))
	before := f.live("secrets", "token").GetUID()
	request := f.request(nil, adopting(secretOf(t, "b")))
	request.Force = true
	result := f.Apply(t.Context(), request)
	require.Len(t, result.Problems, 1)
	assert.Contains(t, result.Problems[0].Message, "field is immutable")
	assert.Equal(t, before, f.live("secrets", "token").GetUID())
}

// C66: the Pods and claims of a StatefulSet stay.
func TestForce_statefulSet(t *testing.T) {
	f := newFixture(t)
	web := func(service string) manifest.Object {
		return parse(t, `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web}
spec:
  replicas: 1
  serviceName: `+service+`
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`)
	}
	first := f.mustApply(nil, web("one"))
	require.Eventually(t, func() bool {
		return f.live("pods", "web-0") != nil && f.live("persistentvolumeclaims", "data-web-0") != nil
	}, patience, often)
	pod, claim := f.live("pods", "web-0").GetUID(), f.live("persistentvolumeclaims", "data-web-0").GetUID()
	sets := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
	before := f.uid(sets, "web")

	request := f.request(first.Inventory, web("two"))
	request.Force = true
	f.until(request, clean)
	assert.NotEqual(t, before, f.uid(sets, "web"))
	assert.Equal(t, pod, f.live("pods", "web-0").GetUID())
	assert.Equal(t, claim, f.live("persistentvolumeclaims", "data-web-0").GetUID())
}

// C66: what goes with a custom object is not known here, so that only its manifest can ask.
func TestForce_customObject(t *testing.T) {
	f := newFixture(t)
	crd, custom := definition(t, f)
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		rules := []any{map[string]any{"rule": "self == oldSelf", "message": "size is immutable"}}
		require.NoError(t, unstructured.SetNestedSlice(v.(map[string]any), rules,
			"schema", "openAPIV3Schema", "properties", "spec", "properties", "size", "x-kubernetes-validations"))
	}
	require.NoError(t, unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"))
	custom.Object["spec"] = map[string]any{"size": int64(1)}
	first := f.until(f.request(nil, crd, custom), clean)
	made, err := f.things("v1").Get(t.Context(), custom.GetName(), metav1.GetOptions{})
	require.NoError(t, err)
	changed := manifest.Object{Unstructured: custom.DeepCopy()}
	changed.Object["spec"] = map[string]any{"size": int64(2)}
	request := f.request(first.Inventory, crd, changed)
	request.Force = true
	result := f.Apply(t.Context(), request)
	require.Len(t, result.Problems, 1)
	assert.Contains(t, result.Problems[0].Message, "size is immutable")

	changed.SetAnnotations(map[string]string{v1alpha1.ForceAnnotation: "true"})
	request.Force = false
	f.until(request, clean)
	live, err := f.things("v1").Get(t.Context(), custom.GetName(), metav1.GetOptions{})
	require.NoError(t, err)
	assert.NotEqual(t, made.GetUID(), live.GetUID())
	size, _, _ := unstructured.NestedInt64(live.Object, "spec", "size")
	assert.Equal(t, int64(2), size)
}

// C66, C37: force grants no right: what may not be deleted stays, and what may not be created too.
func TestForce_withTheRightsOfTheIdentity(t *testing.T) {
	for missing, verbs := range map[string][]string{
		"delete": {"get", "list", "watch", "create", "patch"},
		"create": {"get", "list", "watch", "delete", "patch"},
	} {
		t.Run(missing, func(t *testing.T) {
			f := newRestricted(t, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: verbs})
			admin := apply.New(t.Context(), f.admin, apply.Options{})
			first := admin.Apply(t.Context(), f.request(nil, secretOf(t, "a")))
			requireClean(t, first)
			before := f.live("secrets", "token").GetUID()
			request := f.request(first.Inventory, secretOf(t, "b"))
			request.Force = true
			result := f.Apply(t.Context(), request)
			require.Len(t, result.Problems, 1)
			assert.Contains(t, result.Problems[0].Message, "cannot "+missing)
			assert.Equal(t, before, f.live("secrets", "token").GetUID())
		})
	}
}
