package browser

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/program"
)

const often = 20 * time.Millisecond

func TestMain(m *testing.M) {
	env.StopOnSignal()
	code := m.Run()
	stopChromium()
	env.StopAll()
	os.Exit(code)
}

var crds = []string{"../../charts/waybill/crds"}

// servers returns the API servers of the hub and of one user cluster, which all tests share.
func servers(t testing.TB) (hub, berlin *env.Cluster) {
	t.Helper()
	all := env.SharedAll(t, env.Options{Name: "hub", NoControllers: true, CRDs: crds}, env.Options{Name: "berlin", NoControllers: true, CRDs: crds})
	return all[0], all[1]
}

// clientOf returns a client of our kinds and those of Kubernetes.
func clientOf(t testing.TB, config *rest.Config) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	c, err := client.New(config, client.Options{Scheme: scheme})
	require.NoError(t, err)
	return c
}

// dashboard is a running `waybill dashboard`.
type dashboard struct {
	*env.Process
	// address of the server, and the path that lets one browser in, once.
	address, login string
}

var printed = regexp.MustCompile(`The dashboard of \S+ is at (http://[^/\s]+)(/\S+)`)

// start starts the program for a user whose kubeconfig names a namespace, and returns when it has said where
// it is.
func start(t testing.TB, config *rest.Config, namespace string, args ...string) dashboard {
	t.Helper()
	bin, err := program.Build(t.Context(), program.CLI)
	require.NoError(t, err)
	content, err := env.Kubeconfig("hub", config)
	require.NoError(t, err)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, content, 0o600))
	process, err := env.StartProcess(env.Command{
		Name: "waybill-dashboard", Path: filepath.Join(bin, program.CLI),
		Args: append([]string{"dashboard", "--no-browser", "--kubeconfig=" + kubeconfig, "--namespace=" + namespace}, args...),
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		if log, err := process.Log(); t.Failed() && err == nil {
			t.Log(program.Tail(log, 30))
		}
		_ = process.Kill() // the test may have done so
	})
	var found []string
	require.Eventually(t, func() bool {
		log, err := process.Log()
		found = printed.FindStringSubmatch(log)
		return err == nil && found != nil
	}, limit, often)
	return dashboard{process, found[1], found[2]}
}

// tenant returns a user who may read the catalog, and do everything with our kinds in one namespace.
func tenant(t testing.TB, api *env.Cluster, namespace string) *rest.Config {
	t.Helper()
	name := "tenant-of-" + namespace
	config, err := api.AddUser(name)
	require.NoError(t, err)
	c := clientOf(t, api.RESTConfig())
	subject := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}}
	own := rbacv1.PolicyRule{APIGroups: []string{v1alpha1.Group}, Resources: []string{"*"}, Verbs: []string{"*"}}
	catalog := rbacv1.PolicyRule{APIGroups: []string{v1alpha1.Group}, Resources: []string{"applicationdefinitions"}, Verbs: []string{"get", "list", "watch"}}
	in, across := metav1.ObjectMeta{Namespace: namespace, Name: name}, metav1.ObjectMeta{Name: name}
	for _, object := range []client.Object{
		&rbacv1.Role{ObjectMeta: in, Rules: []rbacv1.PolicyRule{own}},
		&rbacv1.RoleBinding{ObjectMeta: in, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}, Subjects: subject},
		&rbacv1.ClusterRole{ObjectMeta: across, Rules: []rbacv1.PolicyRule{catalog}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: across, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}, Subjects: subject},
	} {
		require.NoError(t, c.Create(t.Context(), object))
	}
	api.AwaitGranted(t, name, namespace, rbacv1.PolicyRule{APIGroups: own.APIGroups, Resources: []string{"kubernetesclusters"}, Verbs: []string{"watch"}})
	api.AwaitGranted(t, name, "", catalog)
	return config
}

// removeAll deletes the objects of a kind that a test has created in its namespace, so that the pages of
// others do not have them.
func removeAll(t testing.TB, api *env.Cluster, kind client.Object, namespace string) {
	c := clientOf(t, api.RESTConfig())
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), env.Limit) // the test's own has ended
		defer cancel()
		if err := c.DeleteAllOf(ctx, kind, client.InNamespace(namespace)); err != nil {
			t.Errorf("delete the objects of the test: %v", err)
		}
	})
}

// objectPath returns the address of the page of an object; the cluster is empty for the hub.
func objectPath(clusterNamespace, cluster, resource, namespace, name string) string {
	parts := []any{clusterNamespace, cluster, resource, namespace, name}
	for i, part := range parts {
		if part == "" {
			parts[i] = "-"
		}
	}
	return fmt.Sprintf("/objects/%s/%s/%s/%s/%s", parts...)
}
