package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
)

// labelled gives an object the label that the tests select by.
func labelled[T client.Object](object T, app string) T {
	object.SetLabels(map[string]string{"app": app})
	return object
}

func claim(namespace, name string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

// shop creates what an application consists of before there is an Application.
func shop(t *testing.T, cluster *env.Cluster) (c client.Client, namespace string) {
	t.Helper()
	c, namespace = clientOf(t, cluster), cluster.Namespace(t)
	front := labelled(deployment(namespace, "front"), "shop")
	front.Spec.Template.Labels["app"] = "front" // its Pods carry the other label
	front.Spec.Template.Labels["part"] = "shop"
	controller := true
	set := configMap(namespace, "controlled")
	create(t, c, front)
	set.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "front", UID: front.UID, Controller: &controller}}
	create(t, c, labelled(set, "shop"), labelled(configMap(namespace, "settings"), "shop"),
		labelled(claim(namespace, "data"), "shop"), labelled(configMap(namespace, "other"), "else"))
	return c, namespace
}

func adopted(t *testing.T, c client.Client, namespace, name string) *v1alpha1.Application {
	t.Helper()
	app := &v1alpha1.Application{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, app))
	return app
}

// annotationOf returns whose a ConfigMap says that it is.
func annotationOf(t *testing.T, c client.Client, namespace, name string) string {
	t.Helper()
	object := configMap(namespace, name)
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	return object.Annotations[v1alpha1.ApplicationAnnotation]
}

// A89, A90: without kinds, what carries the label and has no controller; data only when it is named.
func TestAdopt_findsWhatIsThere(t *testing.T) {
	cluster := user(t)
	c, namespace := shop(t, cluster)
	got := waybill(t, cluster, "adopt", "shop", "-n", namespace, "-l", "app=shop", "--yes", "--type", "web shop", "--version", "1.2")
	require.Equal(t, 0, got.code, got.errOut)
	assert.Equal(t, "Application/shop in "+namespace+` is to be created: type web shop, ownership Own, selector app=shop, 2 components
KIND              NAME       ANNOTATION
ConfigMap         settings   to be added
Deployment.apps   front      to be added
Ownership is Own: these objects are deleted when the Application is.
Application/shop in `+namespace+` created
2 objects annotated
`, got.out)
	assert.Contains(t, got.errOut, "PersistentVolumeClaim/data is left out: it holds data: name the kind by --kind to have it")

	app := adopted(t, c, namespace, "shop")
	assert.Equal(t, v1alpha1.ApplicationSpec{
		Type: "web shop", Version: "1.2", Ownership: v1alpha1.OwnershipOwn,
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}},
		Components: []v1alpha1.ApplicationComponent{
			{Version: "v1", Kind: "ConfigMap", Name: "settings"}, {Group: "apps", Version: "v1", Kind: "Deployment", Name: "front"},
		},
	}, app.Spec)
	assert.Equal(t, "shop", annotationOf(t, c, namespace, "settings"))
	assert.Empty(t, annotationOf(t, c, namespace, "controlled"))
	assert.Empty(t, annotationOf(t, c, namespace, "other"))

	got = waybill(t, cluster, "adopt", "shop", "-n", namespace, "-l", "app=shop")
	require.Equal(t, 0, got.code, got.errOut)
	assert.Contains(t, got.out, "There is nothing to do.", "and the user is not asked")

	got = waybill(t, cluster, "adopt", "shop", "-n", namespace, "-l", "app=shop", "--yes", "--kind", "pvc", "--ownership", "Observe")
	require.Equal(t, 0, got.code, got.errOut)
	app = adopted(t, c, namespace, "shop")
	assert.Len(t, app.Spec.Components, 3, "an Application that is there gets what it lacks")
	assert.Equal(t, v1alpha1.OwnershipObserve, app.Spec.Ownership)
	assert.Equal(t, "web shop", app.Spec.Type, "what is not said stays")
}

// The plan is shown, and nothing is written without a yes.
func TestAdopt_asksFirst(t *testing.T) {
	cluster := user(t)
	c, namespace := shop(t, cluster)
	adopt := []string{"adopt", "shop", "-n", namespace, "-l", "app=shop", "--kind", "configmaps", "--kubeconfig", cluster.KubeconfigFile()}
	for reason, tc := range map[string]struct {
		in   string
		args []string
		code int
		want string
	}{
		"a no":          {"n\n", nil, 1, "Nothing is written."},
		"no terminal":   {"", nil, 2, "no answer: use --yes to go on without confirmation"},
		"a dry run":     {"", []string{"--dry-run"}, 0, ""},
		"the manifest":  {"", []string{"-o", "yaml"}, 0, ""},
		"also in JSON":  {"", []string{"-o", "json"}, 0, ""},
		"an empty line": {"\n", nil, 1, "Nothing is written."},
	} {
		got := waybillWith(t, tc.in, append(adopt, tc.args...)...)
		assert.Equal(t, tc.code, got.code, "%s: %s", reason, got.errOut)
		assert.Contains(t, got.errOut, tc.want, reason)
		assert.Empty(t, annotationOf(t, c, namespace, "settings"), reason)
		app := &v1alpha1.Application{}
		err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "shop"}, app)
		assert.True(t, apierrors.IsNotFound(err), reason)
	}
	got := waybillWith(t, "", append(adopt, "--dry-run")...)
	assert.Contains(t, got.out, "Application/shop in "+namespace+" created (dry run)\n1 object annotated (dry run)\n")
	got = waybillWith(t, "", append(adopt, "-o", "yaml")...)
	app := &v1alpha1.Application{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(got.out), app), got.out)
	assert.Equal(t, "settings", app.Spec.Components[0].Name)

	got = waybillWith(t, "yes\n", adopt...)
	require.Equal(t, 0, got.code, got.errOut)
	assert.Equal(t, "shop", annotationOf(t, c, namespace, "settings"))
}

// A50, A51, C3: what belongs to another Application, or to none on purpose, is not taken by accident.
func TestAdopt_leavesWhatIsOfOthers(t *testing.T) {
	cluster := user(t)
	c, namespace := shop(t, cluster)
	theirs, nobodys := belonging(configMap(namespace, "theirs"), "them"), belonging(configMap(namespace, "nobodys"), "")
	create(t, c, labelled(theirs, "shop"), labelled(nobodys, "shop"))
	adopt := []string{"adopt", "shop", "-n", namespace, "-l", "app=shop", "--kind", "ConfigMap", "--yes"}

	got := waybill(t, cluster, adopt...)
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.errOut, "ConfigMap/theirs: it belongs to Application them\n")
	assert.Contains(t, got.errOut, "ConfigMap/nobodys: its annotation says that it belongs to none\n")
	assert.Contains(t, got.errOut, "error: 2 objects of others: narrow the selection, or take over with --force")
	assert.Empty(t, annotationOf(t, c, namespace, "settings"), "all or nothing")

	got = waybill(t, cluster, append(adopt, "--force")...)
	require.Equal(t, 0, got.code, got.errOut)
	assert.Contains(t, got.out, "to be added instead of them")
	assert.Equal(t, "shop", annotationOf(t, c, namespace, "theirs"))
	assert.Equal(t, "shop", annotationOf(t, c, namespace, "nobodys"))
}

// A33, and all else that cannot be.
func TestAdopt_refuses(t *testing.T) {
	cluster := user(t)
	c, namespace := shop(t, cluster)
	create(t, c, application(namespace, "taken", "taken"))
	require.Eventually(t, func() bool {
		sets := &appsv1.ReplicaSetList{}
		require.NoError(t, c.List(t.Context(), sets, client.InNamespace(namespace), client.MatchingLabels{"part": "shop"}))
		return len(sets.Items) == 1
	}, limit, often, "the Deployment's controller makes what it controls")
	cases := map[string]struct {
		args []string
		want string
	}{
		"no selector":                  {[]string{"shop"}, "--selector is required"},
		"no such selector":             {[]string{"shop", "-l", "a b"}, "read --selector: "},
		"a label that nothing carries": {[]string{"shop", "-l", "app=nothing"}, "nothing to adopt: of "},
		"only what others control":     {[]string{"shop", "-l", "part=shop", "--kind", "ReplicaSet.apps"}, "the selector part=shop matches no object that could be a component, and 1 object that others control"},
		"an unknown kind":              {[]string{"shop", "-l", "app=shop", "--kind", "Widget.example.com"}, `--kind: the cluster offers no kind "Widget.example.com"`},
		"the wrong group":              {[]string{"shop", "-l", "app=shop", "--kind", "Deployment.batch"}, `the cluster offers no kind "Deployment.batch"`},
		"a cluster-scoped kind":        {[]string{"shop", "-l", "app=shop", "--kind", "Namespace"}, "kind Namespace is cluster-scoped: an Application has components in its own namespace only"},
		"an Application":               {[]string{"shop", "-l", "app=shop", "--kind", "application"}, "an Application is not a component: it is named in spec.dependencies"},
		"what is no object":            {[]string{"shop", "-l", "app=shop", "--kind", "SubjectAccessReview"}, "is cluster-scoped"},
		"what cannot be listed":        {[]string{"shop", "-l", "app=shop", "--kind", "Binding"}, "cannot be listed and annotated"},
		"another selector":             {[]string{"taken", "-l", "app=shop", "--yes"}, "is there with the selector app=taken, which is immutable"},
		"no such ownership":            {[]string{"shop", "-l", "app=shop", "--ownership", "Borrow"}, "--ownership must be Own or Observe"},
		"a name that is none":          {[]string{"Shop!", "-l", "app=shop", "--yes"}, "metadata.name: Invalid value"},
		"a manifest, and writing":      {[]string{"shop", "-l", "app=shop", "-o", "yaml", "--yes"}, "--output prints the manifest and writes nothing"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := waybill(t, cluster, append([]string{"adopt", "-n", namespace}, tc.args...)...)
			assert.Equal(t, 2, got.code)
			assert.Contains(t, got.errOut, tc.want)
			assert.Empty(t, got.out)
		})
	}
}

// Words for kinds are those of kubectl.
func TestAdopt_kinds(t *testing.T) {
	cluster := user(t)
	_, namespace := shop(t, cluster)
	for _, word := range []string{"Deployment", "deployments", "deployment.apps", "Deployment.v1.apps", "deploy", "deploy,Deployment.apps"} {
		got := waybill(t, cluster, "adopt", "shop", "-n", namespace, "-l", "app=shop", "--kind", word, "-o", "jsonpath")
		assert.Equal(t, 2, got.code, "no such format")
		got = waybill(t, cluster, "adopt", "shop", "-n", namespace, "-l", "app=shop", "--kind", word, "-o", "yaml")
		require.Equal(t, 0, got.code, "%s: %s", word, got.errOut)
		assert.Contains(t, got.out, "kind: Deployment\n    name: front\n", word)
	}
}

// A40: who has rights in one namespace can adopt there; kinds that may not be listed are reported.
// What fails for one object is done by running the command again.
func TestAdopt_withRightsInOneNamespace(t *testing.T) {
	cluster := user(t)
	c, namespace := shop(t, cluster)
	kubeconfig, role := userWith(t, cluster, namespace,
		right(v1alpha1.Group, []string{"applications"}, "*"),
		right("", []string{"configmaps"}, "get", "list", "patch"),
		right("apps", []string{"deployments"}, "get", "list"),
	)
	adopt := []string{"adopt", "shop", "-n", namespace, "-l", "app=shop", "--yes", "--kubeconfig", kubeconfig}

	got := waybillWith(t, "", adopt...)
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.errOut, "kinds that you may not list are left out: ")
	assert.Contains(t, got.errOut, `annotate Deployment.apps/front: deployments.apps "front" is forbidden`)
	assert.Contains(t, got.errOut, "1 object could not be annotated: fix that and run the command again")
	assert.Equal(t, "shop", annotationOf(t, c, namespace, "settings"), "one that fails holds up no other")

	patch := []byte(`[{"op": "add", "path": "/rules/2/verbs/-", "value": "patch"}]`)
	require.NoError(t, c.Patch(t.Context(), role, client.RawPatch(types.JSONPatchType, patch)))
	require.Eventually(t, func() bool {
		got = waybillWith(t, "", adopt...)
		return got.code == 0
	}, limit, often)
	assert.Contains(t, got.out, "1 object annotated")

	got = waybillWith(t, "", append(adopt, "--kind", "Secret")...)
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.errOut, "you may not list Secret in namespace "+namespace)

	require.NoError(t, c.Delete(t.Context(), role))
	require.Eventually(t, func() bool {
		got = waybillWith(t, "", adopt...)
		return got.code == 2 && strings.HasPrefix(got.errOut, "error: you may not list ")
	}, limit, often, "not that there is nothing to adopt")
}
