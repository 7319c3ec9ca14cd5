package kubernetescluster_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

func enforced(d *v1alpha1.ApplicationDefinition) { d.Spec.Enforced = true }

func byDefault(d *v1alpha1.ApplicationDefinition) { d.Spec.Default = true }

func provided(kc *v1alpha1.KubernetesCluster) metav1.Condition {
	return condition(kc, v1alpha1.DefinitionsProvidedCondition)
}

func isProvided(kc *v1alpha1.KubernetesCluster) bool {
	return provided(kc).Status == metav1.ConditionTrue
}

// changeDefinition edits a definition of the hub.
func (h *hub) changeDefinition(d *v1alpha1.ApplicationDefinition, f func(*v1alpha1.ApplicationDefinition)) {
	h.t.Helper()
	before := d.DeepCopy()
	f(d)
	require.NoError(h.t, h.Patch(h.t.Context(), d, client.MergeFrom(before)))
}

// untilInstalled waits for the installation that the user cluster is given of a definition.
func (h *hub) untilInstalled(c client.Client, d *v1alpha1.ApplicationDefinition, as func(*v1alpha1.ApplicationInstallation) bool, reason string) *v1alpha1.ApplicationInstallation {
	h.t.Helper()
	var inst *v1alpha1.ApplicationInstallation
	require.True(h.t, eventually(func() bool {
		inst = installation(h.t, c, h.ns, d.Name)
		return inst != nil && as(inst)
	}), "%s: %+v", reason, inst)
	return inst
}

func anyAtAll(*v1alpha1.ApplicationInstallation) bool { return true }

func anotherThan(uid types.UID) func(*v1alpha1.ApplicationInstallation) bool {
	return func(i *v1alpha1.ApplicationInstallation) bool { return i.UID != uid }
}

// K2, K3, C59: what is enforced is in each cluster that fits, comes back when it is deleted or edited, follows the
// definition, and goes to no other cluster.
func TestProvided_enforced(t *testing.T) {
	h := newProvider(t)
	d := h.define("web", enforced, func(d *v1alpha1.ApplicationDefinition) {
		d.Spec.ClusterSelector.MatchLabels["env"] = "prod"
		d.Spec.DefaultDeployOptions = &v1alpha1.DeployOptions{Helm: &v1alpha1.HelmDeployOptions{HistoryLimit: 3}}
	})
	h.add("eu-1", userCluster(t).Kubeconfig(), func(kc *v1alpha1.KubernetesCluster) { kc.Labels["env"] = "prod" })
	h.add("self", nil, func(kc *v1alpha1.KubernetesCluster) { kc.Labels["env"] = "test" })
	h.until("eu-1", isProvided, "it is installed")
	user := newClient(t, userCluster(t).RESTConfig())
	inst := h.untilInstalled(user, d, anyAtAll, "it is installed")
	assert.Equal(t, v1alpha1.ApplicationInstallationSpec{
		ApplicationRef: v1alpha1.ApplicationReference{Name: d.Name, Version: "1.1.0"},
		Namespace:      &v1alpha1.TargetNamespace{Name: d.Name, Create: true},
		DeployOptions:  d.Spec.DefaultDeployOptions,
	}, inst.Spec, "the newest version, with what the definition says")

	require.NoError(t, user.Delete(t.Context(), inst))
	again := h.untilInstalled(user, d, anotherThan(inst.UID), "it was deleted")
	again.Labels = nil
	again.Spec.ValuesBlock, again.Spec.ApplicationRef.Version = "mine: true", "1.0.0"
	require.NoError(t, user.Update(t.Context(), again))
	h.untilInstalled(user, d, func(i *v1alpha1.ApplicationInstallation) bool {
		return i.Labels[v1alpha1.ProvidedLabel] == v1alpha1.ProvidedEnforced && i.Spec.ValuesBlock == "" && i.Spec.ApplicationRef.Version == "1.1.0"
	}, "it was edited")
	h.changeDefinition(d, func(d *v1alpha1.ApplicationDefinition) { d.Spec.DefaultVersion = "1.0.0" })
	h.untilInstalled(user, d, func(i *v1alpha1.ApplicationInstallation) bool { return i.Spec.ApplicationRef.Version == "1.0.0" }, "it follows defaultVersion")
	h.until("self", isReady, "the hub is a cluster of its own")
	assert.Nil(t, installation(t, h, h.ns, d.Name), "the hub does not fit")

	h.stop()
	require.NoError(t, user.Delete(t.Context(), installation(t, user, h.ns, d.Name)))
	h.restart()
	h.untilInstalled(user, d, anyAtAll, "it was deleted while no watch ran")
	h.change("self", func(kc *v1alpha1.KubernetesCluster) { kc.Labels["env"] = "prod" })
	h.untilInstalled(h, d, anyAtAll, "the hub fits")
}

// C47: what is enforced no longer stays where it is, and is the cluster's own.
func TestProvided_enforcedNoLonger(t *testing.T) {
	h := newProvider(t)
	d := h.define("web", enforced)
	h.add("eu-1", userCluster(t).Kubeconfig())
	user := newClient(t, userCluster(t).RESTConfig())
	h.untilInstalled(user, d, anyAtAll, "it is installed")
	free := func(i *v1alpha1.ApplicationInstallation) bool {
		return i.Labels[v1alpha1.ProvidedLabel] == v1alpha1.ProvidedByDefault
	}
	h.change("eu-1", func(kc *v1alpha1.KubernetesCluster) { kc.Labels[label] = "" })
	h.change("eu-1", func(kc *v1alpha1.KubernetesCluster) { kc.Labels[label] = h.ns })
	h.changeDefinition(d, func(d *v1alpha1.ApplicationDefinition) { d.Spec.Enforced = false })
	inst := h.untilInstalled(user, d, free, "it is free")
	inst.Spec.ValuesBlock = "mine: true"
	require.NoError(t, user.Update(t.Context(), inst))

	h.changeDefinition(d, func(d *v1alpha1.ApplicationDefinition) { d.Spec.Default = true })
	require.NoError(t, user.Delete(t.Context(), installation(t, user, h.ns, d.Name)))
	marker := h.define("marker", byDefault)
	h.untilInstalled(user, marker, anyAtAll, "definitions are looked at")
	assert.Nil(t, installation(t, user, h.ns, d.Name), "it had been given to the cluster")
}

// K2: what is installed by default may be removed, and does not come back, whichever process restarts.
func TestProvided_byDefault(t *testing.T) {
	h := newProvider(t)
	d := h.define("web", byDefault, func(d *v1alpha1.ApplicationDefinition) { d.Spec.DefaultVersion = "1.0.0" })
	h.add("eu-1", userCluster(t).Kubeconfig())
	user := newClient(t, userCluster(t).RESTConfig())
	inst := h.untilInstalled(user, d, anyAtAll, "it is installed")
	assert.Equal(t, v1alpha1.ProvidedByDefault, inst.Labels[v1alpha1.ProvidedLabel])
	kc := h.until("eu-1", isProvided, "it is recorded")
	assert.Equal(t, []v1alpha1.ProvidedDefinition{{Name: d.Name, UID: d.UID}}, kc.Status.Provided)

	inst.Spec.ValuesBlock = "mine: true"
	require.NoError(t, user.Update(t.Context(), inst))
	h.changeDefinition(d, func(d *v1alpha1.ApplicationDefinition) { d.Spec.DefaultVersion = "1.1.0" })
	marker := h.define("marker", byDefault)
	h.untilInstalled(user, marker, anyAtAll, "definitions are looked at")
	inst = installation(t, user, h.ns, d.Name)
	assert.Equal(t, "mine: true", inst.Spec.ValuesBlock)
	assert.Equal(t, "1.0.0", inst.Spec.ApplicationRef.Version, "only what is enforced follows")

	require.NoError(t, user.Delete(t.Context(), inst))
	h.restart()
	another := h.define("another", byDefault)
	h.untilInstalled(user, another, anyAtAll, "definitions are looked at")
	assert.Nil(t, installation(t, user, h.ns, d.Name), "it stays removed")
}

// C27: an installation that a user made is not taken over; where it is is said.
func TestProvided_foreignInstallation(t *testing.T) {
	h := newProvider(t)
	user := newClient(t, userCluster(t).RESTConfig())
	h.add("eu-1", userCluster(t).Kubeconfig())
	h.until("eu-1", isReady, "the CRDs are there")
	require.NoError(t, user.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.ns}}))
	install(t, user, h.ns, h.named("web"), func(i *v1alpha1.ApplicationInstallation) { i.Spec.ApplicationRef.Name = "theirs" })
	d := h.define("web", enforced)
	kc := h.until("eu-1", func(kc *v1alpha1.KubernetesCluster) bool { return provided(kc).Reason == v1alpha1.NotProvidedReason }, "the name is taken")
	assert.Contains(t, provided(kc).Message, "ApplicationDefinition "+d.Name+": an installation of that name exists already, which Waybill did not create: delete or rename it")
	assert.True(t, isReady(kc), "the cluster itself is ready")
	theirs := installation(t, user, h.ns, d.Name)
	assert.Equal(t, "theirs", theirs.Spec.ApplicationRef.Name)
	require.NoError(t, user.Delete(t.Context(), theirs))
	h.until("eu-1", isProvided, "the name is free")
}

// C38: a cluster that is removed keeps nothing that only Waybill may delete.
func TestProvided_enforcedGoesWithTheCluster(t *testing.T) {
	h := newProvider(t)
	d := h.define("web", enforced)
	kc := h.add("eu-1", userCluster(t).Kubeconfig())
	user := newClient(t, userCluster(t).RESTConfig())
	h.untilInstalled(user, d, anyAtAll, "it is installed")
	require.NoError(t, h.Delete(t.Context(), kc))
	h.gone("eu-1")
	assert.Nil(t, installation(t, user, h.ns, d.Name))
}

// K3: who undoes what is enforced again and again is outlasted, and not by writing as fast as possible.
func TestProvided_fight(t *testing.T) {
	h := newProvider(t)
	d := h.define("web", enforced)
	h.add("eu-1", userCluster(t).Kubeconfig())
	user := newClient(t, userCluster(t).RESTConfig())
	var last types.UID
	contested := func(kc *v1alpha1.KubernetesCluster) bool { return provided(kc).Reason == v1alpha1.NotProvidedReason }
	for range 6 {
		if last != "" && contested(h.get("eu-1")) {
			break
		}
		inst := h.untilInstalled(user, d, anotherThan(last), "it comes back")
		last = inst.UID
		require.NoError(t, user.Delete(t.Context(), inst))
	}
	kc := h.until("eu-1", contested, "it was deleted too often")
	assert.Contains(t, provided(kc).Message, "another field manager keeps changing or deleting it; corrections back off")
	h.untilInstalled(user, d, anotherThan(last), "it comes back after a pause")
	h.until("eu-1", isProvided, "there is peace")
}
