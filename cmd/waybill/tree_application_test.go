package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
)

// belonging makes an object a component of an Application that selects on label app.
func belonging[T client.Object](object T, app string) T {
	object.SetLabels(map[string]string{"app": app})
	object.SetAnnotations(map[string]string{v1alpha1.ApplicationAnnotation: app})
	return object
}

func configMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// consisting returns an Application that observes these components, `[group/]Kind[/name]`.
func consisting(namespace, name string, components ...v1alpha1.ApplicationComponent) *v1alpha1.Application {
	app := application(namespace, name, name)
	app.Spec.Ownership, app.Spec.Components = v1alpha1.OwnershipObserve, components
	return app
}

// tree returns the lines of the tree of an Application.
func treeOf(t *testing.T, cluster *env.Cluster, namespace, name string, args ...string) (text []string, out string) {
	t.Helper()
	got := waybill(t, cluster, append([]string{"tree", "application/" + name, "-n", namespace}, args...)...)
	require.Equal(t, 0, got.code, got.errOut)
	require.Empty(t, got.errOut)
	return lines(got.out), got.out
}

// A49-A52, A56, A73, A79, A80, C7: what belongs to the Application, what should and does not, and
// what says so and does not.
func TestTree_componentsOfApplication(t *testing.T) {
	cluster, c := user(t), clientOf(t, user(t))
	namespace := cluster.Namespace(t)
	bare := configMap(namespace, "bare")
	bare.Labels = map[string]string{"app": "shop"}
	orphan := belonging(configMap(namespace, "orphan"), "shop")
	orphan.Labels = map[string]string{"app": "else"}
	none := belonging(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "none"}}, "")
	none.Labels["app"] = "shop"
	create(t, c, bare, orphan, none,
		belonging(configMap(namespace, "mine"), "shop"),
		belonging(deployment(namespace, "front"), "shop"),
		belonging(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "unlisted"}}, "shop"),
		consisting(namespace, "shop",
			v1alpha1.ApplicationComponent{Kind: "ConfigMap"},
			v1alpha1.ApplicationComponent{Group: "apps", Kind: "Deployment", Name: "front"},
			v1alpha1.ApplicationComponent{Group: "apps", Kind: "StatefulSet"},
			v1alpha1.ApplicationComponent{Kind: "Service", Name: "front"},
			v1alpha1.ApplicationComponent{Kind: "Secret", Name: "none"},
			v1alpha1.ApplicationComponent{Kind: "Node", Name: "node"},
			v1alpha1.ApplicationComponent{Group: "example.com", Kind: "Widget", Name: "odd"},
		),
	)
	require.Eventually(t, func() bool {
		d := &appsv1.Deployment{}
		return c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "front"}, d) == nil && d.Status.AvailableReplicas == 1
	}, limit, often)

	got, out := treeOf(t, cluster, namespace, "shop")
	assert.Equal(t, []string{
		"Application/shop Current",
		"├─ ConfigMap/mine Current",
		"├─ ConfigMap/orphan Current",
		"├─ Deployment/front Current",
		"│  └─ ReplicaSet/front Current",
		"│     └─ Pod/front Current",
		"├─ Node/node Unknown",
		"├─ Secret/none Current",
		"├─ Secret/unlisted Current",
		"├─ Service/front NotFound",
		"├─ StatefulSet NotFound",
		"└─ Widget/odd NotFound",
	}, got, out)
	for name, message := range map[string]string{
		"ConfigMap/orphan": "orphaned: its labels do not match the selector",
		"Node/node":        "no component: the kind is cluster-scoped",
		"Secret/none":      "no component: its annotation says that it belongs to none",
		"Secret/unlisted":  "no component: spec.components does not list it",
		"Service/front":    "does not exist",
		"StatefulSet":      "no object of the kind is selected",
		"Widget/odd":       "the cluster does not offer this kind",
	} {
		assert.Regexp(t, `(?m)─ `+name+` .*`+message+`$`, out)
	}
}

// A52, A57: with ownership Own, what the Application does not own is reported.
func TestTree_saysWhatIsNotOwned(t *testing.T) {
	cluster, c := user(t), clientOf(t, user(t))
	namespace := cluster.Namespace(t)
	app := consisting(namespace, "shop", v1alpha1.ApplicationComponent{Kind: "ConfigMap"})
	app.Spec.Ownership = v1alpha1.OwnershipOwn
	create(t, c, app)
	owned := belonging(configMap(namespace, "owned"), "shop")
	owned.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ApplicationKind, Name: "shop", UID: app.UID,
	}}
	create(t, c, owned, belonging(configMap(namespace, "waiting"), "shop"))
	_, out := treeOf(t, cluster, namespace, "shop")
	assert.Regexp(t, `ConfigMap/waiting .*not owned yet`, out)
	assert.NotRegexp(t, `ConfigMap/owned .*not owned yet`, out)
}

// A48, A58, A93: dependencies with what they are made of, each once; a cycle ends.
func TestTree_dependenciesOfApplication(t *testing.T) {
	cluster, c := user(t), clientOf(t, user(t))
	namespace := cluster.Namespace(t)
	depends := func(name string, on ...string) *v1alpha1.Application {
		app := consisting(namespace, name, v1alpha1.ApplicationComponent{Kind: "ConfigMap", Name: name})
		app.Spec.Dependencies = on
		return app
	}
	create(t, c, depends("shop", "db", "cache", "gone"), depends("cache", "db"), depends("db", "shop"),
		belonging(configMap(namespace, "shop"), "shop"), belonging(configMap(namespace, "cache"), "cache"), belonging(configMap(namespace, "db"), "db"))
	for range 5 { // the order in which things are read must not show
		got, out := treeOf(t, cluster, namespace, "shop")
		require.Equal(t, []string{
			"Application/shop Current",
			"├─ Application/cache Current",
			"│  ├─ Application/db Current",
			"│  │  ├─ Application/shop Current",
			"│  │  └─ ConfigMap/db Current",
			"│  └─ ConfigMap/cache Current",
			"├─ Application/db Current",
			"├─ Application/gone NotFound",
			"└─ ConfigMap/shop Current",
		}, got, out)
		require.Regexp(t, `│  │  ├─ Application/shop .*depends on itself: the dependencies form a cycle`, out)
		require.Regexp(t, `(?m)^├─ Application/db .*what it is made of is shown at another place of this tree$`, out)
		require.Regexp(t, `Application/gone .*a dependency; does not exist`, out)
	}
	got, out := treeOf(t, cluster, namespace, "shop", "--depth", "1")
	assert.Len(t, got, 5, out)
}

// C39: of a kind without a status, healthExpressions see metadata, and never what a Secret holds.
func TestTree_healthExpressionsSeeMetadata(t *testing.T) {
	cluster, c := user(t), clientOf(t, user(t))
	namespace := cluster.Namespace(t)
	app := consisting(namespace, "shop", v1alpha1.ApplicationComponent{Kind: "Secret"}, v1alpha1.ApplicationComponent{Kind: "ConfigMap"})
	const rotated, stale = "metadata.labels['rotated'] == 'yes'", "metadata.labels['rotated'] == 'failed'"
	app.Spec.HealthExpressions = []v1alpha1.HealthExpression{
		{Kind: "Secret", Current: rotated, Failed: stale}, {Kind: "ConfigMap", Current: rotated, Failed: stale},
	}
	secret := func(name, rotated string) *corev1.Secret {
		object := belonging(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}, "shop")
		object.Labels["rotated"] = rotated
		return object
	}
	settings := belonging(configMap(namespace, "settings"), "shop")
	settings.Labels["rotated"] = "failed"
	create(t, c, app, secret("old", "no"), secret("new", "yes"), secret("odd", "failed"), settings)
	mark, err := cluster.AuditMark(t.Context())
	require.NoError(t, err)
	got, out := treeOf(t, cluster, namespace, "shop")
	assert.Equal(t, []string{
		"Application/shop Current",
		"├─ ConfigMap/settings Failed",
		"├─ Secret/new Current",
		"├─ Secret/odd Failed",
		"└─ Secret/old InProgress",
	}, got, out)
	requests, err := cluster.Requests(t.Context(), mark, env.Accepted, func(r env.Request) bool {
		return r.Namespace == namespace && r.Resource != "applications" && strings.HasPrefix(r.UserAgent, "waybill/")
	})
	require.NoError(t, err)
	assert.Len(t, requests, 2, "the metadata of two kinds: %v", requests)
}

// C39: what is healthy, for kinds that the Application says it of.
func TestTree_healthExpressionsOfApplication(t *testing.T) {
	cluster, c := user(t), clientOf(t, user(t))
	namespace := cluster.Namespace(t)
	app := consisting(namespace, "shop", v1alpha1.ApplicationComponent{Kind: "Service"}, v1alpha1.ApplicationComponent{Kind: "ConfigMap"})
	app.Spec.HealthExpressions = []v1alpha1.HealthExpression{{Kind: "Service", Current: "spec.type == 'LoadBalancer'", Failed: "spec.type == 'NodePort'"}}
	service := func(typ corev1.ServiceType) *corev1.Service {
		return belonging(&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: strings.ToLower(string(typ))},
			Spec:       corev1.ServiceSpec{Type: typ, Ports: []corev1.ServicePort{{Port: 80}}},
		}, "shop")
	}
	create(t, c, app, service(corev1.ServiceTypeClusterIP), service(corev1.ServiceTypeLoadBalancer), service(corev1.ServiceTypeNodePort),
		belonging(configMap(namespace, "settings"), "shop"))
	got, out := treeOf(t, cluster, namespace, "shop")
	assert.Equal(t, []string{
		"Application/shop Current",
		"├─ ConfigMap/settings Current",
		"├─ Service/clusterip InProgress",
		"├─ Service/loadbalancer Current",
		"└─ Service/nodeport Failed",
	}, got, out)
}

// A81, A92: the Pod of the health check is shown apart from the components.
func TestTree_healthCheckOfApplication(t *testing.T) {
	cluster, c := user(t), clientOf(t, user(t))
	namespace := cluster.Namespace(t)
	app := consisting(namespace, "shop", v1alpha1.ApplicationComponent{Kind: "Pod", Name: "front"})
	app.Spec.HealthCheck = &v1alpha1.ApplicationHealthCheck{Template: runtime.RawExtension{Raw: []byte(
		`{"spec":{"containers":[{"name":"check","image":"curl","readinessProbe":{"exec":{"command":["true"]}}}]}}`)}}
	create(t, c, app)
	_, out := treeOf(t, cluster, namespace, "shop")
	assert.Regexp(t, `Pod +\S+ +NotFound +the health check`, out)

	owner := []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ApplicationKind, Name: "shop", UID: app.UID}}
	pod := func(name string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, OwnerReferences: owner},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "c"}}},
		}
	}
	check := belonging(pod("shop-health"), "shop")
	check.Labels[v1alpha1.HealthCheckLabel] = "shop"
	create(t, c, check, belonging(pod("front"), "shop"))
	got, out := treeOf(t, cluster, namespace, "shop")
	assert.Len(t, got, 3, out)
	assert.Regexp(t, `Pod/shop-health .*the health check`, out)
	assert.NotRegexp(t, `Pod/front .*the health check`, out)
}

// A92: the tree says of each Pod why it does not run, in the words of kubectl.
func TestTree_saysWhyPodsDoNotRun(t *testing.T) {
	cluster, c := user(t), clientOf(t, user(t))
	namespace := cluster.Namespace(t)
	waiting := func(reason, message string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	}
	create(t, c, consisting(namespace, "shop", v1alpha1.ApplicationComponent{Kind: "Pod"}))
	for name, tc := range map[string]struct {
		status corev1.ContainerStatus
		why    string
	}{
		"image":  {corev1.ContainerStatus{Image: "nginx:nope", State: waiting("ImagePullBackOff", "Back-off")}, `container "c": ImagePullBackOff: image "nginx:nope"`},
		"config": {corev1.ContainerStatus{State: waiting("CreateContainerConfigError", `secret "db" not found`)}, `container "c": CreateContainerConfigError: secret "db" not found`},
		"crash": {corev1.ContainerStatus{
			State:                waiting("CrashLoopBackOff", "back-off 10s"),
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}},
		}, `container "c": CrashLoopBackOff: exit code 137 (OOMKilled)`},
	} {
		sick := belonging(pod(namespace, name), "shop")
		sick.Spec.SchedulerName = "none" // so that its status stays what the test writes
		create(t, c, sick)
		tc.status.Name = "c"
		sick.Status = corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{tc.status}}
		require.NoError(t, c.Status().Update(t.Context(), sick))
		_, out := treeOf(t, cluster, namespace, "shop")
		assert.Regexp(t, `(?m)─ Pod/`+name+` .*`+regexp.QuoteMeta(tc.why)+`$`, out)
	}
}

// An Application that a GitSync delivers together with its components has them below it, and
// not beside it as well.
func TestTree_componentsAreShownOnce(t *testing.T) {
	cluster, c := hub(t), clientOf(t, hub(t))
	namespace := cluster.Namespace(t)
	sync := gitSync(namespace, "shop")
	sync.Status.Inventory = &v1alpha1.Inventory{Entries: []v1alpha1.InventoryEntry{
		{ID: namespace + "_shop_apps.waybill.dev_Application", Version: "v1alpha1"},
		{ID: namespace + "_mine__ConfigMap", Version: "v1"},
		{ID: namespace + "_other__ConfigMap", Version: "v1"},
	}}
	create(t, c, sync, consisting(namespace, "shop", v1alpha1.ApplicationComponent{Kind: "ConfigMap"}),
		belonging(configMap(namespace, "mine"), "shop"), configMap(namespace, "other"))
	got := waybill(t, cluster, "tree", "gitsync/shop", "-n", namespace)
	require.Equal(t, 0, got.code, got.errOut)
	assert.Equal(t, []string{
		"GitSync/shop InProgress",
		"├─ Application/shop Current",
		"│  └─ ConfigMap/mine Current",
		"└─ ConfigMap/other Current",
	}, lines(got.out), got.out)
}

// A40: rights in one namespace are enough, and a kind that may not be read holds up no other.
func TestTree_withRightsInOneNamespace(t *testing.T) {
	cluster, c := user(t), clientOf(t, user(t))
	namespace := cluster.Namespace(t)
	create(t, c,
		belonging(configMap(namespace, "mine"), "shop"),
		belonging(&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "front"},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
		}, "shop"),
		consisting(namespace, "shop",
			v1alpha1.ApplicationComponent{Kind: "ConfigMap"}, v1alpha1.ApplicationComponent{Kind: "Secret", Name: "hidden"},
			v1alpha1.ApplicationComponent{Kind: "Service", Name: "front"}, v1alpha1.ApplicationComponent{Kind: "Service", Name: "gone"},
		),
	)
	kubeconfig, _ := userWith(t, cluster, namespace,
		right(v1alpha1.Group, []string{"applications"}, "get", "list"),
		right("", []string{"configmaps"}, "get", "list"),
		right("", []string{"services"}, "get"),
	)

	for _, args := range [][]string{{"application/shop"}, {"shop"}} {
		got := waybillWith(t, "", append([]string{"tree", "-n", namespace, "--kubeconfig", kubeconfig}, args...)...)
		require.Equal(t, 0, got.code, got.errOut)
		assert.Empty(t, got.errOut)
		assert.Equal(t, []string{
			"Application/shop Current",
			"├─ ConfigMap/mine Current",
			"├─ Secret/hidden Unknown",
			"├─ Service/front Current",
			"└─ Service/gone NotFound",
		}, lines(got.out), got.out)
		assert.Contains(t, got.out, `secrets is forbidden: User "`+namespace+`" cannot list resource "secrets"`)
	}
	got := waybillWith(t, "", "tree", "application", "-n", namespace, "--kubeconfig", kubeconfig)
	assert.Equal(t, 2, got.code)
	assert.Equal(t, "error: which application? name one: application/NAME\n", got.errOut)
	got = waybillWith(t, "", "tree", "nobody", "-n", namespace, "--kubeconfig", kubeconfig)
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.errOut, "as far as you may see: you may not list gitsyncs")
}

// One list per kind that is named, and one for what may own Pods, however many components.
func TestTree_asksOncePerKind(t *testing.T) {
	cluster, c := user(t), clientOf(t, user(t))
	namespace := cluster.Namespace(t)
	app := consisting(namespace, "shop", v1alpha1.ApplicationComponent{Kind: "ConfigMap"}, v1alpha1.ApplicationComponent{Group: "apps", Kind: "StatefulSet"})
	objects := []client.Object{app}
	for _, name := range []string{"a", "b", "c", "d"} {
		labels := map[string]string{"app": "shop", "set": name}
		set := belonging(&appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec: appsv1.StatefulSetSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: name, Image: "nginx:1.29"}}},
				},
			},
		}, "shop")
		objects = append(objects, set, belonging(configMap(namespace, name), "shop"))
	}
	create(t, c, objects...)
	mark, err := cluster.AuditMark(t.Context())
	require.NoError(t, err)
	_, out := treeOf(t, cluster, namespace, "shop")
	assert.Contains(t, out, "StatefulSet/d")
	requests, err := cluster.Requests(t.Context(), mark, env.Accepted, func(r env.Request) bool {
		return r.Namespace == namespace && strings.HasPrefix(r.UserAgent, "waybill/")
	})
	require.NoError(t, err)
	assert.Len(t, requests, 5, "the Application; metadata of two kinds; the StatefulSets; the Pods: %v", requests)
}
