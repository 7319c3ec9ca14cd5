package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/controllers/kubernetescluster"
	"waybill.dev/waybill/sync/controllers/kubernetescluster/agent"
	testhub "waybill.dev/waybill/test/hub"
)

const system = v1alpha1.DefaultSystemNamespace

// broughtIn selects the clusters that the driver of these tests serves.
const broughtIn = "brought-in"

// startDriver runs the controller of KubernetesClusters in the hub, for those with the label, until the
// test ends.
func startDriver(t *testing.T) {
	t.Helper()
	t.Cleanup(func() { // the hub of other tests has no id, or another one
		id := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: v1alpha1.HubConfigMap}}
		require.NoError(t, client.IgnoreNotFound(clientOf(t, hub(t)).Delete(context.WithoutCancel(t.Context()), id)))
	})
	process := testhub.Start(t, hub(t), func(ctx context.Context, mgr ctrl.Manager, s testhub.Shared) error {
		installer, err := agent.New(ctx, agent.Options{HubID: s.HubID, SystemNamespace: system, Charts: s.Charts, Image: "registry.example/waybill:1.0.0"})
		if err != nil {
			return err
		}
		return (&kubernetescluster.Reconciler{
			Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder("test"), Clusters: s.Clusters, Secrets: s.Secrets, HubID: s.HubID,
			SystemNamespace: system, Agent: installer, ClusterSelector: labels.SelectorFromSet(labels.Set{broughtIn: "true"}),
		}).SetupWithManager(ctx, mgr)
	})
	t.Cleanup(sync.OnceFunc(process.Stop))
}

// cluster runs `waybill cluster` with the hub's kubeconfig beside that of the user cluster's administrator.
func cluster(t *testing.T, args ...string) result {
	t.Helper()
	return waybillWith(t, "", append([]string{"cluster"}, append(args, "--hub-kubeconfig", hub(t).KubeconfigFile())...)...)
}

// kept returns the Secret with the kubeconfig that the hub has of a cluster.
func kept(t *testing.T, name string) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	require.NoError(t, clientOf(t, hub(t)).Get(t.Context(), client.ObjectKey{Namespace: system, Name: name + "-kubeconfig"}, secret))
	return secret
}

// withToken returns what the hub may do with a kubeconfig.
func withToken(t *testing.T, kubeconfig []byte) client.Client {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	require.NoError(t, err)
	c, err := client.New(config, client.Options{})
	require.NoError(t, err)
	return c
}

func awaitRefused(t *testing.T, kubeconfig []byte) {
	t.Helper()
	c := withToken(t, kubeconfig)
	require.Eventually(t, func() bool {
		return apierrors.IsUnauthorized(c.Get(t.Context(), client.ObjectKey{Name: "kube-system"}, &corev1.Namespace{}))
	}, limit, often, "the old token counts no more")
}

func absent(t *testing.T, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o)
		assert.True(t, apierrors.IsNotFound(err), "%T %s: %v", o, o.GetName(), err)
	}
}

func named[T client.Object](o T, namespace, name string) T {
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// C38: a cluster is brought in with the credentials of its administrator, of which the hub gets nothing, and
// removed again, which leaves nothing that was created for it.
func TestCluster_bringsInAndLetsGo(t *testing.T) {
	startDriver(t)
	there := clientOf(t, user(t))
	added := func(flags ...string) result {
		return cluster(t, append([]string{"add", "berlin", "--kubeconfig", user(t).KubeconfigFile(), "--label", broughtIn + "=true"}, flags...)...)
	}
	got := added("--agent")
	require.Zero(t, got.code, "%s%s", got.out, got.errOut)
	for _, line := range []string{
		"berlin: ServiceAccount/waybill-hub-access in waybill-system created\n",
		"berlin: ClusterRoleBinding/waybill-hub-access created\n",
		"hub: Secret/berlin-kubeconfig in waybill-system created\n",
		"hub: KubernetesCluster/berlin in waybill-system created\n",
		"KubernetesCluster/berlin in waybill-system: ready: the cluster is connected",
		"agent installed ",
	} {
		assert.Contains(t, got.out, line)
	}
	assert.Contains(t, got.errOut, "which is this machine only", "every address of the tests is")
	first := kept(t, "berlin").Data["value"]
	config, err := clientcmd.Load(first)
	require.NoError(t, err)
	require.Len(t, config.AuthInfos, 1)
	assert.NotEmpty(t, config.AuthInfos["waybill"].Token)
	assertNothingOf(t, user(t).RESTConfig())
	deployed := &appsv1.Deployment{}
	require.NoError(t, withToken(t, first).Get(t.Context(), client.ObjectKey{Namespace: system, Name: "waybill-sync"}, deployed), "the token does its work")

	got = added()
	require.Zero(t, got.code, "%s%s", got.out, got.errOut)
	assert.NotContains(t, got.out, "created")
	assert.Contains(t, got.out, "hub: KubernetesCluster/berlin in waybill-system is there\n")
	assert.Equal(t, first, kept(t, "berlin").Data["value"], "again, it changes nothing")

	got = added("--rotate", "--label", "region=eu")
	require.Zero(t, got.code, "%s%s", got.out, got.errOut)
	assert.Contains(t, got.out, "hub: KubernetesCluster/berlin in waybill-system changed\n")
	assert.Contains(t, got.out, "deleted: its token counts no more\n")
	assert.NotEqual(t, first, kept(t, "berlin").Data["value"])
	awaitRefused(t, first)

	replaced := kept(t, "berlin").Data["value"]
	got = added("--rotate", "--wait=false")
	require.Zero(t, got.code, "%s%s", got.out, got.errOut)
	assert.Contains(t, got.errOut, "are still valid: run the command again, with --wait and without --rotate")
	got = added()
	require.Zero(t, got.code, "%s%s", got.out, got.errOut)
	assert.Contains(t, got.out, "deleted: its token counts no more\n", "what an earlier run has replaced")
	awaitRefused(t, replaced)
	assert.NotContains(t, kept(t, "berlin").Annotations, "apps.waybill.dev/replaced-token-secrets")

	second := kept(t, "berlin")
	got = cluster(t, "remove", "berlin", "--kubeconfig", user(t).KubeconfigFile(), "--yes")
	require.Zero(t, got.code, "%s%s", got.out, got.errOut)
	assert.Contains(t, got.out, "hub: KubernetesCluster/berlin in waybill-system deleted\n")
	assert.Contains(t, got.out, "berlin: namespace waybill-system and the CustomResourceDefinitions stay\n")
	absent(t, clientOf(t, hub(t)), second, named(&v1alpha1.KubernetesCluster{}, system, "berlin"))
	absent(t, there, named(&corev1.ServiceAccount{}, system, "waybill-hub-access"), named(&rbacv1.ClusterRoleBinding{}, "", "waybill-hub-access"),
		named(&appsv1.Deployment{}, system, "waybill-sync"), named(&corev1.Secret{}, system, second.Annotations["apps.waybill.dev/token-secret"]))
}

// assertNothingOf: no Secret of the hub has anything of an administrator's credentials.
func assertNothingOf(t *testing.T, admin *rest.Config) {
	t.Helper()
	secrets := &corev1.SecretList{}
	require.NoError(t, clientOf(t, hub(t)).List(t.Context(), secrets))
	require.NotEmpty(t, secrets.Items)
	for _, s := range secrets.Items {
		for _, data := range s.Data {
			assert.False(t, bytes.Contains(data, admin.KeyData) || bytes.Contains(data, admin.CertData) || bytes.Contains(data, []byte("client-key-data")), s.Name)
		}
	}
}

// Of two that lead to a cluster, each has a token of its own, and the account goes with the last.
func TestCluster_sharesTheAccount(t *testing.T) {
	startDriver(t)
	there := clientOf(t, user(t))
	for _, name := range []string{"berlin", "dublin"} {
		got := cluster(t, "add", name, "--kubeconfig", user(t).KubeconfigFile(), "--label", broughtIn+"=true")
		require.Zero(t, got.code, "%s%s", got.out, got.errOut)
	}
	got := cluster(t, "remove", "berlin", "--kubeconfig", user(t).KubeconfigFile(), "--yes")
	require.Zero(t, got.code, "%s%s", got.out, got.errOut)
	assert.Contains(t, got.out, "and so does ServiceAccount waybill-hub-access, of which others have 1 token")
	got = cluster(t, "remove", "dublin", "--yes")
	require.Zero(t, got.code, "%s%s", got.out, got.errOut)
	assert.Contains(t, got.errOut, "with a token that counts until it is deleted")
	for _, o := range accountOfTheHub() {
		require.NoError(t, there.Delete(t.Context(), o), "without a kubeconfig of its administrator, it stays")
	}
}

// accountOfTheHub are the ServiceAccount and what gives it the least that the hub needs.
func accountOfTheHub() []client.Object {
	const name = "waybill-hub-access"
	return []client.Object{
		named(&corev1.ServiceAccount{}, system, name), named(&rbacv1.ClusterRole{}, "", name), named(&rbacv1.ClusterRoleBinding{}, "", name),
		named(&rbacv1.Role{}, system, name), named(&rbacv1.RoleBinding{}, system, name),
	}
}

// A dry run, and what is printed for a repository, write nothing, and show no token.
func TestCluster_triesWithoutWriting(t *testing.T) {
	create(t, clientOf(t, hub(t)), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-try"}})
	got := cluster(t, "add", "berlin", "-n", "team-try", "--kubeconfig", user(t).KubeconfigFile(), "--dry-run")
	require.Zero(t, got.code, got.errOut)
	for _, line := range []string{
		"berlin: ServiceAccount/waybill-hub-access in waybill-system would be created\n",
		"berlin: Secret/waybill-hub-access-... in waybill-system would be created\n",
		"hub: Secret/berlin-kubeconfig in team-try would be created\n",
		"hub: KubernetesCluster/berlin in team-try would be created\n",
	} {
		assert.Contains(t, got.out, line)
	}
	absent(t, clientOf(t, hub(t)), named(&v1alpha1.KubernetesCluster{}, "team-try", "berlin"), named(&corev1.Secret{}, "team-try", "berlin-kubeconfig"))
	absent(t, clientOf(t, user(t)), named(&corev1.ServiceAccount{}, system, "waybill-hub-access"))

	got = cluster(t, "add", "berlin", "-n", "team-try", "--context", "nobody-is-asked", "--agent", "--label", "a=b", "-o", "yaml")
	require.Zero(t, got.code, got.errOut)
	for _, text := range []string{"kind: ClusterRoleBinding", "kind: KubernetesCluster", "agent: {}", "a: b", "# in the hub", "value: '***'"} {
		assert.Contains(t, got.out, text)
	}
}

// What cannot be is refused before anything is made.
func TestCluster_refuses(t *testing.T) {
	ns := hub(t).Namespace(t)
	create(t, clientOf(t, hub(t)), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "theirs-kubeconfig"}},
		&v1alpha1.KubernetesCluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "other"},
			Spec:       v1alpha1.KubernetesClusterSpec{KubeconfigSecretRef: &v1alpha1.SecretKeyReference{Name: "other-kubeconfig"}},
			Status:     v1alpha1.KubernetesClusterStatus{UID: "another"},
		},
		&v1alpha1.GitSync{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "apps"}, Spec: v1alpha1.GitSyncSpec{URL: "https://example.com/apps.git"},
			Status: v1alpha1.GitSyncStatus{Clusters: []v1alpha1.GitSyncClusterStatus{{Name: "other"}}},
		})
	insecure := filepath.Join(t.TempDir(), "insecure")
	content, err := os.ReadFile(user(t).KubeconfigFile())
	require.NoError(t, err)
	config, err := clientcmd.Load(content)
	require.NoError(t, err)
	for _, c := range config.Clusters {
		c.InsecureSkipTLSVerify, c.CertificateAuthorityData = true, nil
	}
	require.NoError(t, clientcmd.WriteToFile(*config, insecure))
	admin := []string{"--kubeconfig", user(t).KubeconfigFile()}
	for reason, tc := range map[string]struct {
		args []string
		says string
	}{
		"whose credentials?":  {[]string{"add", "berlin"}, "--kubeconfig or --context must say which cluster"},
		"the hub itself":      {[]string{"add", "berlin", "--kubeconfig", hub(t).KubeconfigFile()}, "this is the cluster of the hub itself"},
		"a Secret of others":  {append([]string{"add", "theirs"}, admin...), "the Secret " + ns + "/theirs-kubeconfig exists, and was not made by this command"},
		"another cluster":     {append([]string{"add", "other"}, admin...), "is bound to the cluster with UID another; this one has UID "},
		"no certificate":      {[]string{"add", "berlin", "--kubeconfig", insecure}, "insecure-skip-tls-verify, so that the hub would send its token to any server"},
		"a seed has its own":  {append([]string{"add", "berlin", "--seed", "--agent"}, admin...), "a seed runs a chart of its own"},
		"no name":             {append([]string{"add", "Berlin!"}, admin...), "cannot be the name of a KubernetesCluster"},
		"of another cluster":  {append([]string{"remove", "other", "--yes"}, admin...), "the kubeconfig leads to the one with UID"},
		"nothing to remove":   {[]string{"remove", "nowhere", "--yes"}, "no KubernetesCluster " + ns + "/nowhere in the hub"},
		"without an answer":   {[]string{"remove", "other"}, "no answer: use --yes to go on without confirmation"},
		"with consequences":   {[]string{"remove", "other"}, "delivered to the cluster is deleted there, with what is in the namespaces among that: apps.\n"},
		"without them":        {[]string{"remove", "other", "--abandon"}, "What runs in the cluster stays there"},
		"no such file":        {[]string{"add", "berlin", "--kubeconfig", "/nowhere"}, "load the kubeconfig of the cluster"},
		"another's user hub":  {append([]string{"add", "berlin", "--cluster", "dublin"}, admin...), "leave out --cluster"},
		"not over plain text": {append([]string{"add", "berlin", "--server", "http://berlin"}, admin...), "--server must begin with https://"},
	} {
		got := cluster(t, append(tc.args, "-n", ns)...)
		assert.Equal(t, 2, got.code, reason)
		assert.Contains(t, got.errOut, tc.says, reason)
	}
	absent(t, clientOf(t, user(t)), named(&corev1.ServiceAccount{}, system, "waybill-hub-access"))
}
