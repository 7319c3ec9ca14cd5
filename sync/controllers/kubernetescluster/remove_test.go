package kubernetescluster_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
)

func inNamespace(ns string) client.DeleteAllOfOption { return client.InNamespace(ns) }

// copied creates an ApplicationDefinition in the user cluster that is the copy of a hub.
func copied(t *testing.T, c client.Client, name, of string) {
	t.Helper()
	definition := &v1alpha1.ApplicationDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{v1alpha1.CopyOfAnnotation: of}},
		Spec:       v1alpha1.ApplicationDefinitionSpec{Versions: []v1alpha1.ApplicationVersion{{Version: "1.0.0"}}},
	}
	require.NoError(t, c.Create(t.Context(), definition))
	t.Cleanup(func() { _ = c.Delete(cleanup(t), definition) })
}

func exists(t *testing.T, c client.Client, name string) bool {
	t.Helper()
	err := c.Get(t.Context(), client.ObjectKey{Name: name}, &v1alpha1.ApplicationDefinition{})
	require.NoError(t, client.IgnoreNotFound(err))
	return !apierrors.IsNotFound(err)
}

// held is an installation as the installation controller leaves it.
func held(inst *v1alpha1.ApplicationInstallation) { inst.Finalizers = []string{v1alpha1.Finalizer} }

func release(t *testing.T, c client.Client, inst *v1alpha1.ApplicationInstallation) {
	t.Helper()
	before := inst.DeepCopy()
	inst.Finalizers = nil
	require.NoError(t, c.Patch(t.Context(), inst, client.MergeFrom(before)))
	require.NoError(t, client.IgnoreNotFound(c.Delete(t.Context(), inst)))
}

// delivering creates a GitSync that has objects in a cluster.
func (h *hub) delivering(name, cluster string) *v1alpha1.GitSync {
	h.t.Helper()
	gs := &v1alpha1.GitSync{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.ns, Name: name},
		Spec:       v1alpha1.GitSyncSpec{URL: "https://git.example.com/apps.git"},
	}
	require.NoError(h.t, h.Create(h.t.Context(), gs))
	h.t.Cleanup(func() { _ = h.Client.Delete(cleanup(h.t), gs) })
	gs.Status.Clusters = []v1alpha1.GitSyncClusterStatus{{Name: cluster, Ready: true}}
	require.NoError(h.t, h.Status().Update(h.t.Context(), gs))
	h.seen(gs)
	return gs
}

// left has a GitSync have taken out what it delivered.
func (h *hub) left(gs *v1alpha1.GitSync) {
	h.t.Helper()
	gs.Status.Clusters = nil
	require.NoError(h.t, h.Status().Update(h.t.Context(), gs))
}

// C38: with onDelete Wait a KubernetesCluster stays until no installation is left; then our
// copies go, and no others.
func TestKubernetesCluster_waitsForInstallations(t *testing.T) {
	h := newHub(t, options{})
	h.add("eu-1", userCluster(t).Kubeconfig())
	h.until("eu-1", isReady, "it is engaged")
	user, ns := newClient(t, userCluster(t).RESTConfig()), userCluster(t).Namespace(t)
	copied(t, user, "ours", hubID)
	copied(t, user, "theirs", "another-hub")
	inst := install(t, user, ns, "left", held)
	h.until("eu-1", func(kc *v1alpha1.KubernetesCluster) bool { return kc.Status.InstallationCount == 1 }, "it is seen")

	require.NoError(t, h.Delete(t.Context(), h.get("eu-1")))
	kc := h.until("eu-1", reason(v1alpha1.InUseReason), "the installation holds it")
	assert.Equal(t, "waiting for what is left in the cluster: ApplicationInstallation "+ns+"/left: delete it; "+
		"set spec.onDelete to Abandon to remove it without cleanup", condition(kc, v1alpha1.ReadyCondition).Message)
	assert.True(t, exists(t, user, "ours"))

	release(t, user, inst)
	h.gone("eu-1")
	assert.False(t, exists(t, user, "ours"))
	assert.True(t, exists(t, user, "theirs"))
}

// C38: a GitSync that still has objects in the cluster holds it too.
func TestKubernetesCluster_waitsForGitSyncs(t *testing.T) {
	h := newHub(t, options{})
	h.add("eu-1", userCluster(t).Kubeconfig())
	h.until("eu-1", isReady, "it is engaged")
	gs := h.delivering("apps", "eu-1")

	require.NoError(t, h.Delete(t.Context(), h.get("eu-1")))
	kc := h.until("eu-1", reason(v1alpha1.InUseReason), "the GitSync holds it")
	assert.Contains(t, condition(kc, v1alpha1.ReadyCondition).Message, "GitSync "+h.ns+"/apps (of the hub)")

	h.left(gs)
	h.gone("eu-1")
}

// C38: an unreachable cluster holds its KubernetesCluster, and the message names the way
// out. With Abandon it is removed at once.
func TestKubernetesCluster_unreachableIsAbandoned(t *testing.T) {
	h := newHub(t, options{})
	gate, kubeconfig := gated(t, userCluster(t))
	h.add("eu-1", kubeconfig)
	h.until("eu-1", isReady, "it is engaged")
	gate.Shut()
	h.until("eu-1", reason(v1alpha1.ClusterUnreachableReason), "it died")

	require.NoError(t, h.Delete(t.Context(), h.get("eu-1")))
	kc := h.until("eu-1", func(kc *v1alpha1.KubernetesCluster) bool {
		message := condition(kc, v1alpha1.ReadyCondition).Message
		return strings.Contains(message, "Abandon") && strings.Contains(message, "connection refused")
	}, "the way out is named")
	assert.Equal(t, "the API server does not answer: connection refused; nothing can be deleted in the cluster until it does; "+
		"set spec.onDelete to Abandon to remove it without cleanup", condition(kc, v1alpha1.ReadyCondition).Message)

	h.change("eu-1", func(kc *v1alpha1.KubernetesCluster) { kc.Spec.OnDelete = v1alpha1.DeleteAbandon })
	h.gone("eu-1")
}

// C38: what runs in an abandoned cluster stays, and hangs on nothing of ours.
func TestKubernetesCluster_abandonsWhatRuns(t *testing.T) {
	h := newHub(t, options{})
	h.add("eu-1", userCluster(t).Kubeconfig(), func(kc *v1alpha1.KubernetesCluster) { kc.Spec.OnDelete = v1alpha1.DeleteAbandon })
	h.until("eu-1", isReady, "it is engaged")
	user, ns := newClient(t, userCluster(t).RESTConfig()), userCluster(t).Namespace(t)
	copied(t, user, "abandoned", hubID)
	inst := install(t, user, ns, "kept", func(inst *v1alpha1.ApplicationInstallation) {
		inst.Finalizers = []string{v1alpha1.Finalizer, "example.com/theirs"}
	})
	require.NoError(t, h.Delete(t.Context(), h.get("eu-1")))
	h.gone("eu-1")
	require.NoError(t, user.Get(t.Context(), client.ObjectKeyFromObject(inst), inst))
	assert.Equal(t, []string{"example.com/theirs"}, inst.Finalizers)
	assert.False(t, exists(t, user, "abandoned"))
	release(t, user, inst)
}

// C38: what is scheduled to the cluster may run there, even if the status does not know of it, as
// after a restore of the hub.
func TestKubernetesCluster_lostStatusHoldsNoLess(t *testing.T) {
	h := newHub(t, options{})
	gate, kubeconfig := gated(t, userCluster(t))
	gate.Shut()
	h.add("eu-1", kubeconfig)
	h.until("eu-1", reason(v1alpha1.ClusterUnreachableReason), "it is down")
	app := h.application("web", "eu-1")
	require.NoError(t, h.Delete(t.Context(), h.get("eu-1")))
	h.until("eu-1", func(kc *v1alpha1.KubernetesCluster) bool {
		return strings.Contains(condition(kc, v1alpha1.ReadyCondition).Message, "Abandon")
	}, "the application holds it")
	require.NoError(t, h.Client.Delete(t.Context(), app))
	h.gone("eu-1")
}

// C38: contents of a namespace go in any order. What has to be taken out of the cluster can be,
// although the kubeconfig went first.
func TestKubernetesCluster_secretGoesFirst(t *testing.T) {
	h := newHub(t, options{})
	h.add("eu-1", userCluster(t).Kubeconfig())
	h.until("eu-1", isReady, "it is engaged")
	gs := h.delivering("apps", "eu-1")
	gs.Finalizers = []string{"example.com/hold"}
	require.NoError(t, h.Update(t.Context(), gs))
	require.NoError(t, h.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.ns}}))
	require.True(t, eventually(func() bool {
		return apierrors.IsNotFound(h.Get(t.Context(), h.key("eu-1"), &corev1.Secret{}))
	}), "the namespace controller deletes the Secret")
	h.until("eu-1", reason(v1alpha1.InUseReason), "the GitSync holds it")
	_, err := h.registry.Get(h.key("eu-1"))
	require.NoError(t, err, "what is delivered can still be taken out")

	require.True(t, eventually(func() bool {
		return assert.NoError(t, h.Get(t.Context(), h.key("apps"), gs)) && !gs.DeletionTimestamp.IsZero()
	}), "the namespace controller deletes the GitSync, and has done with it")
	h.left(gs)
	h.gone("eu-1")
	gs.Finalizers = nil
	require.NoError(t, h.Update(t.Context(), gs))
}

// What was never reached holds nothing.
func TestKubernetesCluster_neverReachedIsDeleted(t *testing.T) {
	h := newHub(t, options{})
	gate, kubeconfig := gated(t, userCluster(t))
	gate.Shut()
	h.add("eu-1", kubeconfig)
	h.until("eu-1", reason(v1alpha1.ClusterUnreachableReason), "it is down")
	require.NoError(t, h.Delete(t.Context(), h.get("eu-1")))
	h.gone("eu-1")
}

// C35, C38: who takes the kubeconfig away from a KubernetesCluster that is being deleted does not
// get this cluster for it, with Waybill's rights, and not its clean-up either.
func TestKubernetesCluster_doesNotBecomeTheHub(t *testing.T) {
	h := newHub(t, options{})
	h.add("eu-1", userCluster(t).Kubeconfig())
	h.until("eu-1", isReady, "it is engaged")
	copied(t, h.Client, "of-the-hub", hubID)
	h.delivering("apps", "eu-1")
	require.NoError(t, h.Delete(t.Context(), h.get("eu-1")))
	h.until("eu-1", reason(v1alpha1.InUseReason), "the GitSync holds it")

	h.change("eu-1", func(kc *v1alpha1.KubernetesCluster) { kc.Spec.KubeconfigSecretRef = nil })
	kc := h.until("eu-1", reason(v1alpha1.InvalidKubeconfigReason), "it leads nowhere")
	assert.Equal(t, "it is being deleted, and spec.kubeconfigSecretRef was removed: restore it; "+
		"set spec.onDelete to Abandon to remove it without cleanup", condition(kc, v1alpha1.ReadyCondition).Message)
	_, err := h.registry.Get(h.key("eu-1"))
	require.ErrorIs(t, err, cluster.ErrNotEngaged)

	h.change("eu-1", func(kc *v1alpha1.KubernetesCluster) { kc.Spec.OnDelete = v1alpha1.DeleteAbandon })
	h.gone("eu-1")
	assert.True(t, exists(t, h.Client, "of-the-hub"))
}

// The hub itself can be removed as any other cluster.
func TestKubernetesCluster_hubIsDeleted(t *testing.T) {
	h := newHub(t, options{})
	h.add("hub", nil)
	h.until("hub", isReady, "it is engaged")
	gs := h.delivering("apps", "hub")
	require.NoError(t, h.Delete(t.Context(), h.get("hub")))
	h.until("hub", reason(v1alpha1.InUseReason), "the GitSync holds it")
	h.left(gs)
	h.gone("hub")
}
