package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
)

// How long a test waits for what happens by itself, and how often it looks.
const (
	limit = env.Limit
	often = 20 * time.Millisecond
)

func TestMain(m *testing.M) {
	silenceLibraries()
	env.Main(m)
}

// result is what a run of the program came to.
type result struct {
	out, errOut string
	code        int
}

// waybill runs the program against a cluster.
func waybill(t testing.TB, cluster *env.Cluster, args ...string) result {
	t.Helper()
	return waybillWith(t, "", append(args, "--kubeconfig", cluster.KubeconfigFile())...)
}

// waybillWith runs the program with that input.
func waybillWith(t testing.TB, in string, args ...string) result {
	t.Helper()
	var out, errOut bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(in), Out: &out, ErrOut: &errOut}
	code := run(append([]string{"waybill"}, args...), streams)
	return result{out: out.String(), errOut: errOut.String(), code: code}
}

func hub(t testing.TB) *env.Cluster {
	t.Helper()
	return env.Shared(t, env.Options{Name: "hub", Pods: true, CRDs: []string{"../../charts/waybill/crds"}})
}

func user(t testing.TB) *env.Cluster {
	t.Helper()
	return env.Shared(t, env.Options{
		Name: "user", Pods: true, Audit: true, CRDs: []string{"../../charts/waybill/crds", "testdata/databases.yaml"},
	})
}

func clientOf(t testing.TB, cluster *env.Cluster) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	c, err := client.New(cluster.RESTConfig(), client.Options{Scheme: scheme})
	require.NoError(t, err)
	return c
}

// create creates objects, ours with the status that they have, and deletes them at the
// test's end.
func create(t testing.TB, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		wanted := object.DeepCopyObject().(client.Object)
		require.NoError(t, c.Create(t.Context(), object))
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), limit) // the test's own has ended
			defer cancel()
			_ = c.Delete(ctx, object) // the test may have deleted it
		})
		if _, ours := object.(interface {
			GetReconcileStatus() *v1alpha1.ReconcileStatus
		}); ours {
			wanted.SetResourceVersion(object.GetResourceVersion())
			require.NoError(t, c.Status().Update(t.Context(), wanted))
		}
	}
}

// userWith returns the kubeconfig of a user who has these rights in a namespace, and no others. The
// user has the name of the namespace.
func userWith(t testing.TB, cluster *env.Cluster, namespace string, rights ...rbacv1.PolicyRule) (file string, role *rbacv1.Role) {
	t.Helper()
	role = grant(t, cluster, namespace, namespace, rights...)
	config, err := cluster.AddUser(namespace)
	require.NoError(t, err)
	return kubeconfigFile(t, config), role
}

// grant gives a user rights in a namespace. They are in force when it returns.
func grant(t testing.TB, cluster *env.Cluster, user, namespace string, rights ...rbacv1.PolicyRule) *rbacv1.Role {
	t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "rights"}, Rules: rights}
	create(t, clientOf(t, cluster), role, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "rights"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "rights"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	})
	cluster.AwaitGranted(t, user, namespace, rights...)
	return role
}

// kubeconfigFile writes a kubeconfig for as long as the test runs.
func kubeconfigFile(t testing.TB, config *rest.Config) string {
	t.Helper()
	content, err := env.Kubeconfig("user", config)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(file, content, 0o600))
	return file
}

// right allows verbs on resources of a group.
func right(group string, resources []string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
}

// engage makes a user cluster known to the hub.
func engage(t testing.TB, hub client.Client, namespace, name string, kubeconfig []byte) {
	t.Helper()
	engageAs(t, hub, client.ObjectKey{Namespace: namespace, Name: name}, kubeconfig, v1alpha1.ClusterRoleUser)
}

// engageAs makes a cluster of any role known to the hub.
func engageAs(t testing.TB, hub client.Client, key client.ObjectKey, kubeconfig []byte, role v1alpha1.ClusterRole) {
	t.Helper()
	namespace, name := key.Namespace, key.Name
	create(t, hub,
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-kubeconfig"},
			Data:       map[string][]byte{"value": kubeconfig},
		},
		&v1alpha1.KubernetesCluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec: v1alpha1.KubernetesClusterSpec{
				Role: role, KubeconfigSecretRef: &v1alpha1.SecretKeyReference{Name: name + "-kubeconfig"},
			},
		},
	)
}
