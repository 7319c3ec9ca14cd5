package webhooks_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
)

// change is an edit of what no edit may touch.
type change struct {
	reason string
	create func(namespace, definition string) client.Object
	edit   func(client.Object)
	field  string // what the error names
}

var changes = map[string]change{
	"selector": {
		"A33: a change would orphan components",
		func(ns, _ string) client.Object { return newApplication(ns) },
		func(o client.Object) {
			o.(*v1alpha1.Application).Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}}
		},
		"spec.selector",
	},
	"selector, one more label": {
		"A33: also what only narrows it",
		func(ns, _ string) client.Object { return newApplication(ns) },
		func(o client.Object) { o.(*v1alpha1.Application).Spec.Selector.MatchLabels["tier"] = "web" },
		"spec.selector",
	},
	"definition": {
		"C59: another application under the same release",
		func(ns, def string) client.Object { return newInstallation(ns, def, "v1.0.0") },
		func(o client.Object) { o.(*v1alpha1.ApplicationInstallation).Spec.ApplicationRef.Name = "other" },
		"spec.applicationRef.name",
	},
	"target namespace": {
		"C59: the release would be left behind",
		func(ns, def string) client.Object {
			i := newInstallation(ns, def, "v1.0.0")
			i.Spec.Namespace = &v1alpha1.TargetNamespace{Name: "here"}
			return i
		},
		func(o client.Object) { o.(*v1alpha1.ApplicationInstallation).Spec.Namespace.Name = "there" },
		"spec",
	},
	"method": {
		"C59: installations have releases of the old one",
		func(_, _ string) client.Object {
			d := newDefinition()
			d.Spec.Method = v1alpha1.MethodKustomize
			d.Spec.Versions = []v1alpha1.ApplicationVersion{{Version: "1", Template: &v1alpha1.ApplicationTemplate{
				Source: v1alpha1.ApplicationSource{Git: &v1alpha1.GitSource{Remote: "https://git.example.com/x"}}}}}
			return d
		},
		func(o client.Object) { o.(*v1alpha1.ApplicationDefinition).Spec.Method = v1alpha1.MethodHelm },
		"spec.method",
	},
	"cluster selector": {
		"P4, W55: everything would have to move",
		func(ns, _ string) client.Object { return newKubernetesApplication(ns) },
		func(o client.Object) {
			o.(*v1alpha1.KubernetesApplication).Spec.ClusterSelector = &metav1.LabelSelector{}
		},
		"spec.clusterSelector",
	},
	"identity of a template": {
		"W57, C14: the object would be orphaned",
		func(ns, _ string) client.Object { return newKubernetesApplication(ns) },
		func(o client.Object) {
			templates := o.(*v1alpha1.KubernetesApplication).Spec.ResourceTemplates
			templates[0].Spec.Template = newTemplate(newObject("v1", "Secret", "web"))
		},
		"spec.resourceTemplates",
	},
	"identity of a resource": {
		"W56: the object would be orphaned",
		func(ns, _ string) client.Object {
			return newKubernetesApplicationResource(ns, newObject("v1", "ConfigMap", "web"))
		},
		func(o client.Object) {
			object := newObject("v1", "ConfigMap", "web")
			object.SetNamespace("elsewhere")
			o.(*v1alpha1.KubernetesApplicationResource).Spec.Template = newTemplate(object)
		},
		"spec.template",
	},
}

// writers are the ways to write an object (P10).
var writers = map[string]func(t *testing.T, c client.Client, before, after client.Object) error{
	"update": func(t *testing.T, c client.Client, _, after client.Object) error { return c.Update(t.Context(), after) },
	"patch": func(t *testing.T, c client.Client, before, after client.Object) error {
		return c.Patch(t.Context(), after, client.MergeFrom(before))
	},
	"server-side apply": func(t *testing.T, c client.Client, _, after client.Object) error {
		raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(after)
		require.NoError(t, err)
		u := &unstructured.Unstructured{Object: map[string]any{"spec": raw["spec"]}}
		gvk, err := c.GroupVersionKindFor(after)
		require.NoError(t, err)
		u.SetGroupVersionKind(gvk)
		u.SetNamespace(after.GetNamespace())
		u.SetName(after.GetName())
		return c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("somebody"), client.ForceOwnership)
	},
}

// A33, P2, P10, C9
func TestImmutable_byTheWebhook(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	assertImmutable(t, admin, c.Cluster, definition(t, admin, nil).Name)
}

// C9, P2: the rules stand in the CRDs too, and hold where no webhook is registered.
func TestImmutable_byTheSchemaAlone(t *testing.T) {
	c := env.Shared(t, env.Options{Name: "bare", NoControllers: true, CRDs: []string{crds}})
	admin, _ := newClient(t, c.RESTConfig(), nil)
	assertImmutable(t, admin, c, "web")
}

func assertImmutable(t *testing.T, admin client.Client, c *env.Cluster, definition string) {
	for name, tc := range changes {
		for how, write := range writers {
			t.Run(name+" by "+how, func(t *testing.T) {
				before := tc.create(c.Namespace(t), definition)
				require.NoError(t, admin.Create(t.Context(), before))
				t.Cleanup(func() { _ = admin.Delete(afterwards(t), before) })
				after := before.DeepCopyObject().(client.Object)
				tc.edit(after)
				err := write(t, admin, before, after)
				require.True(t, apierrors.IsInvalid(err), "%s: %v", tc.reason, err)
				assert.ErrorContains(t, err, tc.field)
				assert.ErrorContains(t, err, "immutable")
			})
		}
	}
}

// A34: everything but the selector may change.
func TestApplication_mayChange(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	app := newApplication(c.Namespace(t))
	require.NoError(t, admin.Create(t.Context(), app))
	app.Spec.Type, app.Spec.Description = "Blog", "now a blog"
	app.Spec.Components = []v1alpha1.ApplicationComponent{{Kind: "Service"}}
	app.Labels = map[string]string{"team": "a"}
	require.NoError(t, admin.Update(t.Context(), app))
	assert.EqualValues(t, 2, app.Generation, "C4")
}

// P10, C49: a status is written whatever the spec says by now.
func TestStatus_isNotLookedAt(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	obj := newInstallation(c.Namespace(t), "nobody-has-it", "v1.0.0")
	require.NoError(t, admin.Create(t.Context(), obj, client.FieldOwner(v1alpha1.FieldManager)))
	obj.Status.Failures = 3
	require.NoError(t, admin.Status().Update(t.Context(), obj))
}
