package webhooks_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
)

func bare(t *testing.T) (client.Client, string) {
	t.Helper()
	c := env.Shared(t, env.Options{Name: "bare", NoControllers: true, CRDs: []string{crds}})
	admin, _ := newClient(t, c.RESTConfig(), nil)
	return admin, c.Namespace(t)
}

// largest is an application with as many templates, and names as long, as may be.
func largest(namespace string) *v1alpha1.KubernetesApplication {
	app := newKubernetesApplication(namespace)
	app.Spec.ResourceTemplates = nil
	for i := range v1alpha1.MaxResourceTemplates {
		object := newObject("example.com/"+strings.Repeat("v", 305), strings.Repeat("K", 63), strings.Repeat("o", 250)+fmt.Sprintf("%03d", i))
		object.SetNamespace(strings.Repeat("n", 63))
		app.Spec.ResourceTemplates = append(app.Spec.ResourceTemplates,
			newResourceTemplate(strings.Repeat("r", 60)+fmt.Sprintf("%03d", i), object))
	}
	return app
}

// C48: the rules over all templates are affordable where there are as many as may be.
func TestKubernetesApplication_theSchemaAtItsLimits(t *testing.T) {
	admin, ns := bare(t)
	app := largest(ns)
	require.NoError(t, admin.Create(t.Context(), app))
	app.Spec.ClusterName = "berlin"
	app.Spec.ResourceTemplates[199].Metadata.Labels = map[string]string{"tier": "web"}
	require.NoError(t, admin.Update(t.Context(), app), "an update compares all with all")

	moved := app.DeepCopy()
	moved.Spec.ResourceTemplates[199].Spec.Template = newTemplate(newObject("v1", "ConfigMap", "other"))
	err := admin.Update(t.Context(), moved)
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	assert.ErrorContains(t, err, "immutable")

	twice := app.DeepCopy()
	twice.Spec.ResourceTemplates[0] = twice.Spec.ResourceTemplates[199]
	err = admin.Update(t.Context(), twice)
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	assert.ErrorContains(t, err, "must be unique")

	more := app.DeepCopy()
	more.Spec.ResourceTemplates = append(more.Spec.ResourceTemplates, newResourceTemplate("more", newObject("v1", "ConfigMap", "more")))
	require.True(t, apierrors.IsInvalid(admin.Update(t.Context(), more)))
}

// W1, W16, W17, W21, W44: what the hub does not know stays as it was written.
func TestKubernetesApplication_keepsTemplatesVerbatim(t *testing.T) {
	admin, ns := bare(t)
	object := newObject("never.example.com/v7", "Heard", "of-it")
	object.Object["spec"] = map[string]any{"deep": map[string]any{"list": []any{int64(1), 2.5, "three", nil, true}}}
	object.Object["data"] = map[string]any{"key": "value"}
	object.SetLabels(map[string]string{"app": "heard"})
	object.SetAnnotations(map[string]string{"note": "kept"})
	app := newKubernetesApplication(ns)
	app.Spec.ResourceTemplates = []v1alpha1.ResourceTemplate{newResourceTemplate("heard", object)}
	require.NoError(t, admin.Create(t.Context(), app))

	stored := &v1alpha1.KubernetesApplication{}
	require.NoError(t, admin.Get(t.Context(), client.ObjectKeyFromObject(app), stored))
	got, err := stored.Spec.ResourceTemplates[0].Spec.Template.Object()
	require.NoError(t, err)
	assert.Equal(t, object.Object, got.Object)
	assert.Equal(t, v1alpha1.StatePending, stored.Status.State)

	resource := newKubernetesApplicationResource(ns, object)
	require.NoError(t, admin.Create(t.Context(), resource))
	remote := []byte(`{"replicas":3,"unheard":{"of":[1,"two"]}}`)
	resource.Status.Remote = newJSON(remote)
	require.NoError(t, admin.Status().Update(t.Context(), resource))
	require.NoError(t, admin.Get(t.Context(), client.ObjectKeyFromObject(resource), resource))
	assert.JSONEq(t, string(remote), string(resource.Status.Remote.Raw))
}

// W8, W17, W33, C40, C48: what the schema refuses.
func TestKubernetesApplication_theSchemaRefuses(t *testing.T) {
	admin, ns := bare(t)
	for name, tc := range map[string]struct {
		reason string
		edit   func(spec map[string]any, template map[string]any)
		field  string
	}{
		"no selector": {"W7: where to is said, and be it {}",
			func(spec, _ map[string]any) { delete(spec, "clusterSelector") }, "spec.clusterSelector"},
		"no templates": {"W8: one or more",
			func(spec, _ map[string]any) { spec["resourceTemplates"] = []any{} }, "spec.resourceTemplates"},
		"no apiVersion": {"W17",
			func(_, template map[string]any) { delete(template, "apiVersion") }, "template.apiVersion"},
		"no kind": {"W17",
			func(_, template map[string]any) { delete(template, "kind") }, "template.kind"},
		"no name": {"W17",
			func(_, template map[string]any) { template["metadata"] = map[string]any{} }, "template.metadata.name"},
		"no metadata": {"W17",
			func(_, template map[string]any) { delete(template, "metadata") }, "template.metadata"},
	} {
		t.Run(name, func(t *testing.T) {
			template := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "web"}}
			spec := map[string]any{
				"clusterSelector": map[string]any{},
				"resourceTemplates": []any{map[string]any{
					"metadata": map[string]any{"name": "web"}, "spec": map[string]any{"template": template},
				}},
			}
			tc.edit(spec, template)
			app := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
			app.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.KubernetesApplicationKind))
			app.SetNamespace(ns)
			app.SetName("web")
			err := admin.Create(t.Context(), app)
			require.True(t, apierrors.IsInvalid(err), "%s: %v", tc.reason, err)
			assert.ErrorContains(t, err, tc.field)
		})
	}
}

// C40, W60: set once, and neither changed nor taken away.
func TestKubernetesApplication_clusterNameIsSetOnce(t *testing.T) {
	admin, ns := bare(t)
	app := newKubernetesApplication(ns)
	require.NoError(t, admin.Create(t.Context(), app))
	app.Spec.ClusterName = "berlin"
	require.NoError(t, admin.Update(t.Context(), app))
	for _, other := range []string{"oslo", ""} {
		changed := app.DeepCopy()
		changed.Spec.ClusterName = other
		err := admin.Update(t.Context(), changed)
		require.True(t, apierrors.IsInvalid(err), "%q: %v", other, err)
		assert.ErrorContains(t, err, "clusterName is immutable")
	}
}

// asWritten is an object as a file has it, fields that are empty included.
func asWritten(t *testing.T, obj client.Object, kind string, edit func(spec, template map[string]any)) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	require.NoError(t, err)
	delete(content, "status")
	written := &unstructured.Unstructured{Object: content}
	written.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	spec := content["spec"].(map[string]any)
	holder := spec
	if templates, ok := spec["resourceTemplates"].([]any); ok {
		holder = templates[0].(map[string]any)["spec"].(map[string]any)
	}
	edit(spec, holder["template"].(map[string]any))
	return written
}

// C12, C14, C40, W56, W60: a field that is empty is one that is absent, also where it is
// written down: the cluster can still be chosen, and the namespace is the same.
func TestKubernetesApplication_emptyIsAbsent(t *testing.T) {
	admin, ns := bare(t)
	for kind, made := range map[string]client.Object{
		v1alpha1.KubernetesApplicationKind:         newKubernetesApplication(ns),
		v1alpha1.KubernetesApplicationResourceKind: newKubernetesApplicationResource(ns, newObject("v1", "ConfigMap", "web")),
	} {
		t.Run(kind, func(t *testing.T) {
			live := asWritten(t, made, kind, func(spec, template map[string]any) {
				spec["clusterName"] = ""
				template["metadata"].(map[string]any)["namespace"] = ""
			})
			require.NoError(t, admin.Create(t.Context(), live))
			cluster, there, err := unstructured.NestedString(live.Object, "spec", "clusterName")
			require.NoError(t, err)
			require.True(t, there && cluster == "", "stored as it was written")

			scheduled := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"clusterName":"berlin"}}`))
			require.NoError(t, admin.Patch(t.Context(), live, scheduled), "the scheduler writes")
			absent := asWritten(t, made, kind, func(spec, _ map[string]any) { spec["clusterName"] = "berlin" })
			absent.SetResourceVersion(live.GetResourceVersion())
			require.NoError(t, admin.Update(t.Context(), absent), "the namespace is left out")
			for _, namespace := range []string{"", "elsewhere"} {
				named := asWritten(t, made, kind, func(spec, template map[string]any) {
					spec["clusterName"] = "berlin"
					template["metadata"].(map[string]any)["namespace"] = namespace
				})
				named.SetResourceVersion(absent.GetResourceVersion())
				err := admin.Update(t.Context(), named, client.DryRunAll)
				assert.Equal(t, namespace != "", apierrors.IsInvalid(err), "namespace %q: %v", namespace, err)
			}
		})
	}
}

// W58, C14: under a name everything but the identity may change, and a template that was
// removed may come back as another.
func TestKubernetesApplication_mayChange(t *testing.T) {
	admin, ns := bare(t)
	app := newKubernetesApplication(ns)
	require.NoError(t, admin.Create(t.Context(), app))
	object := newObject("v1", "ConfigMap", "web")
	object.SetLabels(map[string]string{"new": "label"})
	object.Object["data"] = map[string]any{"new": "data"}
	app.Spec.ResourceTemplates = []v1alpha1.ResourceTemplate{
		newResourceTemplate("web", object), newResourceTemplate("more", newObject("v1", "Secret", "more")),
	}
	require.NoError(t, admin.Update(t.Context(), app))
	app.Spec.ResourceTemplates = app.Spec.ResourceTemplates[:1]
	require.NoError(t, admin.Update(t.Context(), app))
	app.Spec.ResourceTemplates = append(app.Spec.ResourceTemplates, newResourceTemplate("more", newObject("v1", "Service", "more")))
	require.NoError(t, admin.Update(t.Context(), app))
}
