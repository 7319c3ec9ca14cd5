package integration_test

import (
	"context"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/lint/support"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/webhooks"
	"waybill.dev/waybill/webhooks/registration"
)

const waybillChart = "../../charts/waybill"

// renderWaybill renders the product's own chart into the system namespace, without a cluster.
func renderWaybill(t *testing.T, values map[string]any) ([]*unstructured.Unstructured, error) {
	t.Helper()
	chart, err := loader.LoadDir(waybillChart)
	require.NoError(t, err)
	install := action.NewInstall(&action.Configuration{Capabilities: chartutil.DefaultCapabilities})
	install.ReleaseName, install.Namespace = "waybill", v1alpha1.DefaultSystemNamespace
	install.ClientOnly, install.DryRun, install.KubeVersion = true, true, &chartutil.KubeVersion{Version: "v1.36.0", Major: "1", Minor: "36"}
	release, err := install.RunWithContext(t.Context(), chart, values)
	if err != nil {
		return nil, err
	}
	return decodeObjects(t, []byte(release.Manifest)), nil
}

// names are those of the objects of a kind, sorted.
func names(objects []*unstructured.Unstructured, kind string) []string {
	var found []string
	for _, o := range objects {
		if o.GetKind() == kind {
			found = append(found, o.GetName())
		}
	}
	slices.Sort(found)
	return found
}

func TestChart_lints(t *testing.T) {
	for _, message := range action.NewLint().Run([]string{waybillChart}, nil).Messages {
		assert.Less(t, message.Severity, support.WarningSev, message.Error())
	}
}

// C44: whatever the values ask for is accepted by an API server, field by field.
func TestChart_isAccepted(t *testing.T) {
	a := newExampleApplier(t)
	for name, tc := range map[string]struct {
		values      map[string]any
		deployments []string
	}{
		"by default": {nil, []string{"waybill-sync", "waybill-webhook"}},
		"a user cluster": {map[string]any{"roles": map[string]any{"hub": false, "driver": false}},
			[]string{"waybill-sync", "waybill-webhook"}},
		"admission only": {map[string]any{"roles": map[string]any{"hub": false, "driver": false, "agent": false}},
			[]string{"waybill-webhook"}},
		"a process per role": {map[string]any{"sync": map[string]any{"perRole": true}},
			[]string{"waybill-agent", "waybill-driver", "waybill-hub", "waybill-webhook"}},
		"everything": {map[string]any{
			"image":            map[string]any{"digest": "sha256:" + string(slices.Repeat([]byte("a"), 64))},
			"imagePullSecrets": []any{"registry"},
			"networkPolicy":    map[string]any{"enabled": true},
			"userRoles":        map[string]any{"installForAdmins": true},
			"sync": map[string]any{
				"clusterSelector": "region=eu", "allowKubeconfigExec": true, "allowKubeconfigInsecure": true, "extraArgs": []any{"--v"},
				"nodeSelector": map[string]any{"a": "b"}, "tolerations": []any{map[string]any{"operator": "Exists"}},
				"affinity": map[string]any{"nodeAffinity": map[string]any{}}, "podLabels": map[string]any{"a": "b"},
				"podAnnotations": map[string]any{"a": "b"}, "priorityClassName": "system-cluster-critical",
			},
		}, []string{"waybill-sync", "waybill-webhook"}},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := renderWaybill(t, tc.values)
			require.NoError(t, err)
			assert.Equal(t, tc.deployments, names(objects, "Deployment"))
			a.apply(t, objects)
		})
	}
}

// C44: with a process per role, each has its own account and its own ClusterRole.
func TestChart_rolesShareNoRights(t *testing.T) {
	objects, err := renderWaybill(t, map[string]any{"sync": map[string]any{"perRole": true, "clusterAdmin": false}})
	require.NoError(t, err)
	assert.Equal(t, []string{"waybill-agent", "waybill-driver", "waybill-hub", "waybill-webhook"}, names(objects, "ServiceAccount"))
	for _, o := range objects {
		if o.GetKind() != "ClusterRoleBinding" || o.GetName() == "waybill-catalog" {
			continue
		}
		subjects, _, _ := unstructured.NestedSlice(o.Object, "subjects")
		require.Len(t, subjects, 1, o.GetName())
		role, _, _ := unstructured.NestedString(o.Object, "roleRef", "name")
		assert.NotEqual(t, "cluster-admin", role)
		assert.Contains(t, role, subjects[0].(map[string]any)["name"], o.GetName())
	}
}

// C44: the agent may do with components what its values say, and no more.
func TestChart_agentRights(t *testing.T) {
	for name, tc := range map[string]struct {
		agent map[string]any
		verbs []any
	}{
		"by default":                 {map[string]any{}, []any{"get", "list", "watch", "patch"}},
		"where owning takes a right": {map[string]any{"mayDelete": true}, []any{"get", "list", "watch", "patch", "delete"}},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := renderWaybill(t, map[string]any{"agent": tc.agent})
			require.NoError(t, err)
			at := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool {
				return o.GetKind() == "ClusterRole" && o.GetName() == "waybill-agent-components"
			})
			require.GreaterOrEqual(t, at, 0)
			rules, _, _ := unstructured.NestedSlice(objects[at].Object, "rules")
			require.NotEmpty(t, rules)
			for _, rule := range rules {
				assert.Equal(t, tc.verbs, rule.(map[string]any)["verbs"])
			}
		})
	}
}

// What the chart passes to a program is a flag of that program.
func TestChart_flagsExist(t *testing.T) {
	objects, err := renderWaybill(t, map[string]any{"sync": map[string]any{
		"clusterSelector": "a=b", "allowKubeconfigExec": true, "allowKubeconfigInsecure": true,
	}})
	require.NoError(t, err)
	for _, o := range objects {
		if o.GetKind() != "Deployment" {
			continue
		}
		containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
		container := containers[0].(map[string]any)
		source, err := os.ReadFile("../../cmd" + container["command"].([]any)[0].(string) + "/main.go")
		require.NoError(t, err)
		for _, arg := range container["args"].([]any) {
			name, _, _ := strings.Cut(strings.TrimPrefix(arg.(string), "--"), "=")
			if !strings.HasPrefix(name, "log-") { // those are a library's
				assert.Contains(t, string(source), strconv.Quote(name), o.GetName())
			}
		}
	}
}

func TestChart_serviceMonitors(t *testing.T) {
	objects, err := renderWaybill(t, map[string]any{"metrics": map[string]any{"serviceMonitor": map[string]any{"enabled": true}}})
	require.NoError(t, err)
	assert.Equal(t, []string{"waybill-sync", "waybill-webhook"}, names(objects, "ServiceMonitor"))
}

// A typo in a value is an error, not a default.
func TestChart_refusesUnknownValues(t *testing.T) {
	for reason, values := range map[string]map[string]any{
		"typo":          {"replicaCount": 2},
		"typo within":   {"webhook": map[string]any{"replica": 2}},
		"wrong type":    {"webhook": map[string]any{"replicas": "two"}},
		"no such level": {"log": map[string]any{"level": "verbose"}},
	} {
		_, err := renderWaybill(t, values)
		assert.Error(t, err, reason)
	}
}

// C51: installed by Helm, the webhook has all the rights that it needs and no more than the chart
// gives it; an upgrade leaves alone what it filled in; an uninstall leaves nothing that blocks.
func TestChart_livesWithTheWebhook(t *testing.T) {
	cluster := env.Start(t, env.Options{Name: "chart"})
	clientset, err := kubernetes.NewForConfig(cluster.RESTConfig())
	require.NoError(t, err)
	helm := helmOf(t, cluster)
	chart, err := loader.LoadDir(waybillChart)
	require.NoError(t, err)

	install := action.NewInstall(helm)
	install.ReleaseName, install.Namespace, install.CreateNamespace = "waybill", v1alpha1.DefaultSystemNamespace, true
	_, err = install.RunWithContext(t.Context(), chart, nil)
	require.NoError(t, err)

	createApplication(t, cluster.RESTConfig())
	stop := runWebhook(t, cluster.RESTConfig())
	filled := filledConfiguration(t, clientset)
	assertFollowsKinds(t, cluster, clientset)

	upgrade := action.NewUpgrade(helm)
	upgrade.Namespace = v1alpha1.DefaultSystemNamespace
	_, err = upgrade.RunWithContext(t.Context(), "waybill", chart, map[string]any{"webhook": map[string]any{"replicas": 3}})
	require.NoError(t, err)
	assert.Equal(t, filled, filledConfiguration(t, clientset), "an upgrade empties nothing")

	assertPeopleMay(t, clientset)

	_, err = action.NewUninstall(helm).Run("waybill")
	require.NoError(t, err)
	_, err = clientset.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), registration.ConfigurationName, metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	stop()
	_, err = clientset.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), registration.ConfigurationName, metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "a webhook that is still there makes it again: %v", err)
}

// createApplication creates one that lists a kind which is there, and one which is not.
func createApplication(t *testing.T, config *rest.Config) {
	t.Helper()
	c, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	app := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.ApplicationKind,
		"metadata": map[string]any{"name": "web"},
		"spec": map[string]any{
			"type": "web", "selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
			"components": []any{map[string]any{"kind": "ConfigMap"}, map[string]any{"kind": "Widget", "group": "example.com"}},
		},
	}}
	_, err = c.Resource(v1alpha1.GroupVersion.WithResource("applications")).Namespace(metav1.NamespaceDefault).Create(t.Context(), app, metav1.CreateOptions{})
	require.NoError(t, err)
}

// assertFollowsKinds: the chart gives the webhook the rights to learn of Applications, and of
// kinds that come later (C51).
func assertFollowsKinds(t *testing.T, cluster *env.Cluster, clientset kubernetes.Interface) {
	t.Helper()
	awaitInjection := func(resource string) {
		require.Eventually(t, func() bool {
			configuration, err := clientset.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(t.Context(), registration.ConfigurationName, metav1.GetOptions{})
			require.NoError(t, err)
			for _, w := range configuration.Webhooks {
				for _, r := range w.Rules {
					if slices.Contains(r.Resources, resource) {
						return true
					}
				}
			}
			return false
		}, limit, often, resource)
	}
	awaitInjection("configmaps")
	require.NoError(t, cluster.InstallCRDs(t.Context(), "testdata/widgets.yaml"))
	awaitInjection("widgets")
}

func helmOf(t *testing.T, cluster *env.Cluster) *action.Configuration {
	t.Helper()
	flags := genericclioptions.NewConfigFlags(false)
	kubeconfig, namespace := cluster.KubeconfigFile(), v1alpha1.DefaultSystemNamespace
	flags.KubeConfig, flags.Namespace = &kubeconfig, &namespace
	configuration := &action.Configuration{}
	require.NoError(t, configuration.Init(flags, namespace, "secret", t.Logf))
	return configuration
}

// runWebhook runs the webhook as its Pod would, with the rights of its ServiceAccount, until it
// is ready. The function that it returns stops it.
func runWebhook(t *testing.T, admin *rest.Config) func() {
	t.Helper()
	config := rest.CopyConfig(admin)
	namespace := v1alpha1.DefaultSystemNamespace
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + namespace + ":waybill-webhook",
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}
	health := freeAddress(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- webhooks.Run(ctx, config, webhooks.Options{
			Registration: registration.Options{
				Namespace: namespace, Endpoint: registration.ServiceEndpoint(namespace, "waybill-webhook"), Listen: freeAddress(t),
			},
			MetricsAddress: "0", HealthAddress: health,
		})
	}()
	require.Eventually(t, func() bool {
		resp, err := http.Get("http://" + health + "/readyz")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}, 2*limit, often, "the webhook does not become ready")
	return func() {
		cancel()
		require.NoError(t, <-ended)
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// filledConfiguration is what the webhook wrote into the chart's configuration.
func filledConfiguration(t *testing.T, clientset kubernetes.Interface) []string {
	t.Helper()
	configuration, err := clientset.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), registration.ConfigurationName, metav1.GetOptions{})
	require.NoError(t, err)
	var found []string
	for _, w := range configuration.Webhooks {
		require.Equal(t, "waybill-webhook", w.ClientConfig.Service.Name)
		found = append(found, w.Name+" "+string(w.ClientConfig.CABundle))
	}
	require.NotEmpty(t, found)
	return found
}

// assertPeopleMay: the user roles reach people through the ClusterRoles that they have anyway (C35).
func assertPeopleMay(t *testing.T, clientset kubernetes.Interface) {
	t.Helper()
	for _, tc := range []struct {
		role, verb, group, resource string
		want                        bool
	}{
		{"view", "get", v1alpha1.Group, "gitsyncs", true},
		{"view", "create", v1alpha1.Group, "applications", false},
		{"edit", "create", v1alpha1.Group, "applicationinstallations", true},
		{"edit", "use", v1alpha1.Group, "kubernetesclusters", false},
		{"admin", "use", v1alpha1.Group, "kubernetesclusters", true},
		{"admin", "install-into", "", "namespaces", true},
		{"admin", "install", v1alpha1.Group, "applicationdefinitions", false},
		{"waybill-installer", "install", v1alpha1.Group, "applicationdefinitions", true},
	} {
		bindRole(t, clientset, tc.role)
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: tc.role, ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: metav1.NamespaceDefault, Verb: tc.verb, Group: tc.group, Resource: tc.resource, Name: "x",
			},
		}}
		// Roles are aggregated by a controller, and authorizers learn of it a moment later.
		assert.Eventually(t, func() bool {
			got, err := clientset.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
			return err == nil && got.Status.Allowed == tc.want
		}, limit, often, "%+v", tc)
	}
}

// bindRole gives the ClusterRole to a user of the same name, in namespace default.
func bindRole(t *testing.T, clientset kubernetes.Interface, role string) {
	t.Helper()
	_, err := clientset.RbacV1().RoleBindings(metav1.NamespaceDefault).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: role}},
	}, metav1.CreateOptions{})
	if err != nil {
		require.True(t, apierrors.IsAlreadyExists(err), err)
	}
}
