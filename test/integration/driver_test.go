package integration_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
	"waybill.dev/waybill/test/program"
)

// narrow is a hub where a driver serves one namespace, with the rights and flags that the chart gives it and
// the controllers of the hub.
type narrow struct {
	*hub.World
	user client.Client
	// driver is the driver's own view of the hub, and account its name there.
	driver  client.Client
	account string
}

func newNarrow(t *testing.T) *narrow {
	t.Helper()
	clusters := hubAndUser(t)
	n := &narrow{World: hub.NewWorld(t, clusters[0])}
	var err error
	n.user, err = client.New(clusters[1].RESTConfig(), client.Options{Scheme: hub.NewScheme(t)})
	require.NoError(t, err)
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.DefaultSystemNamespace}}
	require.NoError(t, client.IgnoreAlreadyExists(n.Client.Create(t.Context(), system)))
	objects, err := renderWaybill(t, map[string]any{
		"roles": map[string]any{"agent": false}, "sync": map[string]any{"clusterAdmin": false, "driverNamespaces": []any{n.Namespace}},
	})
	require.NoError(t, err)
	n.grant(objects)
	bin, err := program.Build(t.Context(), program.Sync)
	require.NoError(t, err)
	name := "waybill-driver-" + n.Namespace
	n.account = "system:serviceaccount:" + v1alpha1.DefaultSystemNamespace + ":" + name
	for _, deployment := range []string{"waybill-sync", name} {
		n.run(bin, deployment, find(t, objects, "Deployment", deployment))
	}
	config, err := n.Cluster.AddUser(n.account)
	require.NoError(t, err)
	n.driver, err = client.New(config, client.Options{Scheme: n.Client.Scheme()})
	require.NoError(t, err)
	return n
}

// grant applies accounts, roles and bindings, and waits until they are in force.
func (n *narrow) grant(objects []*unstructured.Unstructured) {
	n.T.Helper()
	for _, o := range objects {
		if !slices.Contains([]string{"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}, o.GetKind()) {
			continue
		}
		require.NoError(n.T, n.Client.Patch(n.T.Context(), o, client.Apply, client.FieldOwner("test"), client.ForceOwnership)) //nolint:staticcheck // of any kind
		n.T.Cleanup(func() { _ = n.Client.Delete(context.Background(), o) })
	}
	for _, o := range objects {
		if o.GetKind() != "RoleBinding" && o.GetKind() != "ClusterRoleBinding" {
			continue
		}
		role := &rbacv1.ClusterRole{} // a Role has the same fields
		require.NoError(n.T, runtime.DefaultUnstructuredConverter.FromUnstructured(find(n.T, objects, strings.TrimSuffix(o.GetKind(), "Binding"), roleOf(o)).Object, role))
		subjects, _, _ := unstructured.NestedSlice(o.Object, "subjects")
		if account := subjects[0].(map[string]any)["name"].(string); strings.HasPrefix(account, "waybill-driver") || account == "waybill-sync" {
			n.Cluster.AwaitGranted(n.T, "system:serviceaccount:"+v1alpha1.DefaultSystemNamespace+":"+account, o.GetNamespace(), role.Rules...)
		}
	}
}

func roleOf(binding *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(binding.Object, "roleRef", "name")
	return name
}

// run runs a Deployment of the chart as a process, under the name of its ServiceAccount.
func (n *narrow) run(bin, account string, deployment *unstructured.Unstructured) {
	n.T.Helper()
	dir := n.T.TempDir()
	config, err := n.Cluster.AddUser("system:serviceaccount:" + v1alpha1.DefaultSystemNamespace + ":" + account)
	require.NoError(n.T, err)
	content, err := env.Kubeconfig(account, config)
	require.NoError(n.T, err)
	path := filepath.Join(dir, "kubeconfig")
	require.NoError(n.T, os.WriteFile(path, content, 0o600))
	args := []string{"--cache-dir=" + dir}
	for _, arg := range container(n.T, deployment)["args"].([]any) {
		name, _, _ := strings.Cut(arg.(string), "=")
		if slices.Contains([]string{"--controllers", "--watch-namespace", "--credentials-namespace", "--leader-elect", "--leader-election-id"}, name) {
			args = append(args, arg.(string))
		}
	}
	process, err := program.Start(n.T.Context(), program.Options{Name: program.Sync, As: account, Bin: bin, Kubeconfig: path, Args: args})
	require.NoError(n.T, err)
	n.T.Cleanup(func() {
		if log, err := process.Log(); n.T.Failed() && err == nil {
			n.T.Log(account + ":\n" + program.Tail(log, 30))
		}
		require.NoError(n.T, process.Kill())
	})
}

// publish defines an application whose chart needs the credentials that it returns.
func (n *narrow) publish() *corev1.Secret {
	n.T.Helper()
	definition, credentials := privateApplication(n.T, n.Namespace)
	n.Create(credentials)
	n.Create(definition)
	return credentials
}

// connect creates a KubernetesCluster in the namespace of the test that leads to the user cluster.
func (n *narrow) connect(user *env.Cluster) {
	n.T.Helper()
	n.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "kubeconfig"}, Data: map[string][]byte{"value": user.Kubeconfig()}})
	n.Create(&v1alpha1.KubernetesCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "berlin"},
		Spec: v1alpha1.KubernetesClusterSpec{
			KubeconfigSecretRef: &v1alpha1.SecretKeyReference{Name: "kubeconfig"}, OnDelete: v1alpha1.DeleteAbandon,
		},
	})
}

// K44, K58, K59, K60: a driver with rights in one namespace installs what needs credentials, from the copies
// there, and can read no Secret of the system namespace or of another one. While the original is gone, the
// installation says so, and what runs is kept.
func TestDriver_readsOneNamespaceOnly(t *testing.T) {
	mark, err := hubAndUser(t)[0].AuditMark(t.Context())
	require.NoError(t, err)
	n := newNarrow(t)
	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: n.Namespace, Annotations: map[string]string{v1alpha1.SecretTypeAnnotation: "helm"}}}
	n.Create(theirs)
	credentials := n.publish()
	n.connect(hubAndUser(t)[1])
	inst := n.install()
	assert.Contains(t, n.await(inst, v1alpha1.InvalidSecretReason), "is not a copy of "+v1alpha1.DefaultSystemNamespace+"/"+credentials.Name+": delete it")
	require.NoError(t, n.Client.Delete(t.Context(), theirs))
	n.awaitInstalled(inst, "1.0.0")

	forbidden := func(err error, what string) { assert.True(t, apierrors.IsForbidden(err), "%s: %v", what, err) }
	ctx := t.Context()
	forbidden(n.driver.Get(ctx, client.ObjectKeyFromObject(credentials), &corev1.Secret{}), "the original")
	forbidden(n.driver.List(ctx, &corev1.SecretList{}, client.InNamespace(v1alpha1.DefaultSystemNamespace)), "Secrets of the system namespace")
	forbidden(n.driver.List(ctx, &corev1.SecretList{}), "all Secrets")
	forbidden(n.driver.List(ctx, &v1alpha1.KubernetesClusterList{}), "all KubernetesClusters")
	forbidden(n.driver.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: n.Namespace, Name: "kubeconfig"}}), "to write Secrets")
	copied := &corev1.Secret{}
	require.NoError(t, n.driver.Get(ctx, client.ObjectKey{Namespace: n.Namespace, Name: credentials.Name}, copied))
	assert.Equal(t, "secret-word", string(copied.Data["password"]))
	secrets := &corev1.SecretList{}
	require.NoError(t, n.user.List(ctx, secrets))
	for i := range secrets.Items {
		assert.NotEqual(t, credentials.Name, secrets.Items[i].Name, "a user cluster has no credentials")
	}

	before := credentials.DeepCopy()
	credentials.Annotations = nil
	require.NoError(t, n.Client.Patch(ctx, credentials, client.MergeFrom(before)))
	n.upgrade(inst, "2.0.0")
	message := n.await(inst, v1alpha1.SecretNotFoundReason)
	assert.Contains(t, message, "there is one if Secret "+v1alpha1.DefaultSystemNamespace+"/"+credentials.Name+" exists and has the annotation "+v1alpha1.SecretTypeAnnotation)
	n.awaitInstalled(nil, "1.0.0")
	before = credentials.DeepCopy()
	credentials.Annotations = map[string]string{v1alpha1.SecretTypeAnnotation: "helm"}
	require.NoError(t, n.Client.Patch(ctx, credentials, client.MergeFrom(before)))
	n.awaitInstalled(inst, "2.0.0")

	here := &v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Name: "here"}, Spec: v1alpha1.KubernetesClusterSpec{OnDelete: v1alpha1.DeleteAbandon}}
	n.Create(here)
	assert.Contains(t, hub.AwaitReason(n.World, here, v1alpha1.InvalidKubeconfigReason), "set spec.kubeconfigSecretRef")

	require.NoError(t, n.user.Delete(ctx, inst))
	require.Eventually(t, func() bool { return apierrors.IsNotFound(n.user.Get(ctx, client.ObjectKeyFromObject(inst), inst)) }, limit, often)
	refused, err := n.Cluster.Requests(ctx, mark, env.ByUser(n.account), func(r env.Request) bool {
		return r.Code == http.StatusForbidden && strings.HasPrefix(r.UserAgent, program.Sync)
	})
	require.NoError(t, err)
	assert.Empty(t, refused, "the chart grants what the program asks for")
}

// install creates an installation in the user cluster.
func (n *narrow) install() *v1alpha1.ApplicationInstallation {
	n.T.Helper()
	inst := &v1alpha1.ApplicationInstallation{
		ObjectMeta: metav1.ObjectMeta{Namespace: n.Namespace, Name: "private"},
		Spec:       v1alpha1.ApplicationInstallationSpec{ApplicationRef: v1alpha1.ApplicationReference{Name: n.Namespace, Version: "1.0.0"}},
	}
	require.NoError(n.T, n.user.Create(n.T.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n.Namespace}}))
	require.Eventually(n.T, func() bool { return n.user.Create(n.T.Context(), inst) == nil }, limit, often, "the driver brings the CRDs")
	n.T.Cleanup(func() {
		_ = n.user.Delete(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n.Namespace}})
	})
	return inst
}

func (n *narrow) upgrade(inst *v1alpha1.ApplicationInstallation, version string) {
	n.T.Helper()
	require.NoError(n.T, n.user.Get(n.T.Context(), client.ObjectKeyFromObject(inst), inst))
	before := inst.DeepCopy()
	inst.Spec.ApplicationRef.Version = version
	require.NoError(n.T, n.user.Patch(n.T.Context(), inst, client.MergeFrom(before)))
}

// await waits until Ready of the installation has a reason, and returns its message.
func (n *narrow) await(inst *v1alpha1.ApplicationInstallation, reason string) string {
	n.T.Helper()
	require.Eventually(n.T, func() bool {
		require.NoError(n.T, n.user.Get(n.T.Context(), client.ObjectKeyFromObject(inst), inst))
		return inst.Status.ObservedGeneration == inst.Generation && conditions.GetReason(inst, v1alpha1.ReadyCondition) == reason
	}, limit, often, "Ready never has the reason %s: %+v", reason, &inst.Status)
	return conditions.GetMessage(inst, v1alpha1.ReadyCondition)
}

// awaitInstalled waits until the installation is Ready, if one is given, and what is installed has a version.
func (n *narrow) awaitInstalled(inst *v1alpha1.ApplicationInstallation, version string) {
	n.T.Helper()
	if inst != nil {
		n.await(inst, v1alpha1.SucceededReason)
	}
	installed := &corev1.ConfigMap{}
	require.NoError(n.T, n.user.Get(n.T.Context(), client.ObjectKey{Namespace: n.Namespace, Name: "installed"}, installed))
	assert.Equal(n.T, version, installed.Data["version"])
}
