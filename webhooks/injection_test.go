package webhooks_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// marks are the annotation, our mark, and the part-of label of an object; "-" where there is none.
func marks(obj metav1.Object) string {
	get := func(values map[string]string, key string) string {
		if value, ok := values[key]; ok {
			return fmt.Sprintf("%q", value)
		}
		return "-"
	}
	return get(obj.GetAnnotations(), v1alpha1.ApplicationAnnotation) + " " + get(obj.GetAnnotations(), v1alpha1.InjectedAnnotation) +
		" " + get(obj.GetLabels(), v1alpha1.PartOfLabel)
}

const (
	ofNobody = "- - -"
	ofBlog   = `"blog" "blog" "blog"`
	ofShop   = `"shop" "shop" "shop"`
)

func newConfigMap(namespace, name string, labels, annotations map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels, Annotations: annotations},
	}
}

// selecting is an Application of that name that lists all of some kinds with label app=<name>.
func selecting(namespace, name string, kinds ...string) *v1alpha1.Application {
	app := newApplication(namespace)
	app.Name = name
	app.Spec.Selector.MatchLabels = map[string]string{"app": name}
	for _, kind := range kinds {
		gk := schema.ParseGroupKind(kind)
		app.Spec.Components = append(app.Spec.Components, v1alpha1.ApplicationComponent{Group: gk.Group, Kind: gk.Kind})
	}
	return app
}

// applied creates Applications and returns when ConfigMaps of the last one are injected.
func applied(t *testing.T, admin client.Client, apps ...*v1alpha1.Application) {
	t.Helper()
	for _, app := range apps {
		require.NoError(t, admin.Create(t.Context(), app))
		t.Cleanup(func() { _ = admin.Delete(afterwards(t), app) })
		awaitMarks(t, admin, newConfigMap(app.Namespace, "probe", app.Spec.Selector.MatchLabels, nil), fmt.Sprintf("%[1]q %[1]q %[1]q", app.Name))
	}
}

// awaitMarks waits until an object that is created gets marks.
func awaitMarks(t *testing.T, admin client.Client, obj client.Object, want string) {
	t.Helper()
	var got string
	require.Eventually(t, func() bool {
		probe := obj.DeepCopyObject().(client.Object)
		require.NoError(t, admin.Create(t.Context(), probe, client.DryRunAll))
		got = marks(probe)
		return got == want
	}, patience, often, "%s %s", obj.GetNamespace(), got)
}

// blogAndShop are two Applications of a new namespace, whose ConfigMaps and Deployments are looked at.
func blogAndShop(t *testing.T) (c *cluster, admin client.Client, warned *warnings, namespace string) {
	t.Helper()
	c = admission(t)
	admin, warned = c.admin(t)
	namespace = c.Namespace(t)
	applied(t, admin, selecting(namespace, "blog", "ConfigMap", "Deployment.apps"), selecting(namespace, "shop", "ConfigMap", "Deployment.apps"))
	warned.take()
	return c, admin, warned, namespace
}

// A20, A89, C3, C32
func TestInjection_marksWhatIsCreated(t *testing.T) {
	_, admin, warned, ns := blogAndShop(t)
	for _, tc := range []struct {
		reason              string
		labels, annotations map[string]string
		want, warning       string
	}{
		{reason: "nobody's", labels: map[string]string{"app": "other"}, want: ofNobody},
		{reason: "without labels", want: ofNobody},
		{reason: "of one", labels: map[string]string{"app": "blog"}, want: ofBlog},
		{reason: "with a label of its own", labels: map[string]string{"app": "blog", v1alpha1.PartOfLabel: "suite"}, want: `"blog" "blog" "suite"`},
		{reason: "explicitly of one", labels: map[string]string{"app": "blog"}, annotations: map[string]string{v1alpha1.ApplicationAnnotation: "blog"}, want: `"blog" - -`},
		{reason: "explicitly of none", labels: map[string]string{"app": "blog"}, annotations: map[string]string{v1alpha1.ApplicationAnnotation: ""}, want: `"" - -`},
		{reason: "explicitly of one that does not match", labels: map[string]string{"app": "blog"},
			annotations: map[string]string{v1alpha1.ApplicationAnnotation: "shop"}, want: `"shop" - -`, warning: "whose selector"},
		{reason: "explicitly of one that is yet to come", labels: map[string]string{"app": "blog"},
			annotations: map[string]string{v1alpha1.ApplicationAnnotation: "later"}, want: `"later" - -`, warning: "which does not exist in namespace"},
	} {
		obj := newConfigMap(ns, "", tc.labels, tc.annotations)
		obj.GenerateName = "generated-" // its name is not there yet when it is looked at
		require.NoError(t, admin.Create(t.Context(), obj), tc.reason)
		assert.Equal(t, tc.want, marks(obj), tc.reason)
		if got := warned.take(); tc.warning == "" {
			assert.Empty(t, got, tc.reason)
		} else if assert.Len(t, got, 1, tc.reason) {
			assert.Contains(t, got[0], tc.warning, tc.reason)
		}
	}
}

// C3: nothing but metadata, and of the object alone.
func TestInjection_leavesSelectorsAndTemplates(t *testing.T) {
	_, admin, _, ns := blogAndShop(t)
	labels := map[string]string{"app": "blog"}
	obj := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web", Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx"}}},
			},
		},
	}
	require.NoError(t, admin.Create(t.Context(), obj))
	assert.Equal(t, ofBlog, marks(obj))
	assert.Equal(t, labels, obj.Spec.Selector.MatchLabels)
	assert.Equal(t, metav1.ObjectMeta{Labels: labels}, obj.Spec.Template.ObjectMeta)
}

// C3, A51
func TestInjection_warnsWhereSeveralMatch(t *testing.T) {
	c := admission(t)
	admin, warned := c.admin(t)
	ns := c.Namespace(t)
	everything := selecting(ns, "everything", "ConfigMap")
	everything.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "all", Operator: metav1.LabelSelectorOpExists}}}
	applied(t, admin, selecting(ns, "blog", "ConfigMap"))
	require.NoError(t, admin.Create(t.Context(), everything))
	awaitMarks(t, admin, newConfigMap(ns, "probe", map[string]string{"all": ""}, nil), `"everything" "everything" "everything"`)
	warned.take()

	obj := newConfigMap(ns, "settings", map[string]string{"app": "blog", "all": ""}, nil)
	require.NoError(t, admin.Create(t.Context(), obj))
	assert.Equal(t, ofNobody, marks(obj))
	got := warned.take()
	require.Len(t, got, 1)
	assert.Contains(t, got[0], "blog, everything")

	obj.Annotations = map[string]string{v1alpha1.ApplicationAnnotation: "everything"}
	require.NoError(t, admin.Update(t.Context(), obj))
	assert.Equal(t, `"everything" - -`, marks(obj))
	assert.Empty(t, warned.take(), "it is said now")
}

// A56, A78, A79, C52: an update works membership out anew where we said what it is, and nowhere else.
func TestInjection_followsUpdates(t *testing.T) {
	_, admin, _, ns := blogAndShop(t)
	obj := newConfigMap(ns, "settings", map[string]string{"app": "blog"}, nil)
	require.NoError(t, admin.Create(t.Context(), obj))
	for _, step := range []struct {
		reason string
		change func()
		want   string
	}{
		{"other content", func() { obj.Data = map[string]string{"a": "b"} }, ofBlog},
		{"the labels of another", func() { obj.Labels["app"] = "shop" }, ofShop},
		{"the labels of nobody", func() { obj.Labels["app"] = "other" }, ofNobody},
		{"no labels at all", func() { obj.Labels = nil }, ofNobody},
		{"labels again", func() { obj.Labels = map[string]string{"app": "blog"} }, ofBlog},
		{"everything of ours lost", func() { obj.Labels, obj.Annotations = map[string]string{"app": "blog"}, nil }, ofBlog},
		{"an explicit none", func() { obj.Annotations[v1alpha1.ApplicationAnnotation] = "" }, `"" - -`},
		{"other labels", func() { obj.Labels["app"] = "shop" }, `"" - -`},
		{"nothing explicit", func() { delete(obj.Annotations, v1alpha1.ApplicationAnnotation) }, ofShop},
	} {
		step.change()
		require.NoError(t, admin.Update(t.Context(), obj), step.reason)
		require.Equal(t, step.want, marks(obj), step.reason)
	}
}

// P10: a user who applies the same again writes nothing, and takes nothing of ours away.
func TestInjection_leavesAppliersAlone(t *testing.T) {
	c, admin, _, ns := blogAndShop(t)
	manifest := `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: ` + ns + `, labels: {app: blog}, annotations: {x: "%d"}}}`
	live := func() *corev1.ConfigMap {
		obj := &corev1.ConfigMap{}
		require.NoError(t, admin.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "settings"}, obj))
		return obj
	}
	for _, how := range [][]string{
		{"apply", "-f", "-"}, {"apply", "--server-side", "--field-manager=team", "-f", "-"}, {"replace", "-f", "-"},
	} {
		t.Run(how[0]+"-"+how[1], func(t *testing.T) {
			if how[0] == "replace" {
				require.NoError(t, admin.Create(t.Context(), newConfigMap(ns, "settings", map[string]string{"app": "shop"}, nil)))
			}
			for n := range 2 {
				text := fmt.Sprintf(manifest, n)
				_, err := c.Kubectl(t.Context(), text, how...)
				require.NoError(t, err)
				first := live()
				assert.Equal(t, ofBlog, marks(first))
				_, err = c.Kubectl(t.Context(), text, how...)
				require.NoError(t, err)
				assert.Equal(t, first.ResourceVersion, live().ResourceVersion, "nothing is written")
			}
			require.NoError(t, admin.Delete(t.Context(), live()))
		})
	}
}

// C52: who applies server-side may say whose it is, though we said so before.
func TestInjection_givesWayToServerSideApply(t *testing.T) {
	_, admin, _, ns := blogAndShop(t)
	apply := func(annotations map[string]any) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{
			"labels": map[string]any{"app": "blog"}, "annotations": annotations,
		}}}
		u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		u.SetNamespace(ns)
		u.SetName("settings")
		require.NoError(t, admin.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("team")))
		return u
	}
	assert.Equal(t, ofBlog, marks(apply(map[string]any{})))
	assert.Equal(t, `"shop" - -`, marks(apply(map[string]any{v1alpha1.ApplicationAnnotation: "shop"})))
	assert.Equal(t, ofBlog, marks(apply(map[string]any{})), "what is no longer said is ours again")
}

// C49: what is being deleted is left alone, and so is every subresource.
func TestInjection_leavesWhatIsBeingDeleted(t *testing.T) {
	_, admin, _, ns := blogAndShop(t)
	obj := newConfigMap(ns, "settings", nil, nil)
	obj.Finalizers = []string{"example.com/hold"}
	require.NoError(t, admin.Create(t.Context(), obj))
	require.NoError(t, admin.Delete(t.Context(), obj))
	require.NoError(t, admin.Get(t.Context(), client.ObjectKeyFromObject(obj), obj))
	obj.Labels = map[string]string{"app": "blog"}
	require.NoError(t, admin.Update(t.Context(), obj))
	assert.Equal(t, ofNobody, marks(obj))
	obj.Finalizers = nil
	require.NoError(t, admin.Update(t.Context(), obj))
	require.True(t, apierrors.IsNotFound(admin.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)))
}

// awaitRootCA returns when the controller manager has written its ConfigMap into a namespace, which
// it does at a time of its own.
func awaitRootCA(t *testing.T, admin client.Client, namespace string) {
	t.Helper()
	require.Eventually(t, func() bool {
		return admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "kube-root-ca.crt"}, &corev1.ConfigMap{}) == nil
	}, patience, often)
}

// C50: an update that leaves labels and annotations alone is not sent, once it is said
// whose the object is.
func TestInjection_isAskedWhereItMayMatter(t *testing.T) {
	_, admin, _, ns := blogAndShop(t)
	awaitRootCA(t, admin, ns)
	asked := func(do func() error) float64 {
		before := injections(t)
		require.NoError(t, do())
		return injections(t) - before
	}
	mine, nobodys := newConfigMap(ns, "mine", map[string]string{"app": "blog"}, nil), newConfigMap(ns, "nobodys", nil, nil)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "secret", Labels: map[string]string{"app": "blog"}}}
	assert.InDelta(t, 1, asked(func() error { return admin.Create(t.Context(), mine) }), 0)
	assert.InDelta(t, 1, asked(func() error { return admin.Create(t.Context(), nobodys) }), 0)
	assert.InDelta(t, 0, asked(func() error { return admin.Create(t.Context(), secret) }), 0, "Secrets are not listed")
	mine.Data, nobodys.Data = map[string]string{"a": "b"}, map[string]string{"a": "b"}
	assert.InDelta(t, 0, asked(func() error { return admin.Update(t.Context(), mine) }), 0)
	assert.InDelta(t, 1, asked(func() error { return admin.Update(t.Context(), nobodys) }), 0, "it may belong to an Application by now")
	mine.Annotations["x"] = "y"
	assert.InDelta(t, 1, asked(func() error { return admin.Update(t.Context(), mine) }), 0)
	assert.InDelta(t, 0, asked(func() error { return admin.Delete(t.Context(), mine) }), 0)
}
