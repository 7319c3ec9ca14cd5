package seed_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// C29, K3, K31, K32: a seed keeps its clusters as they are declared while the hub is away. What was changed on
// both sides is as on the hub once it is back.
func TestSeed_goesOnWithoutTheHub(t *testing.T) {
	const name = "alone"
	f := newFleet(t)
	f.define(t, name)
	edit(t, f.hub, named(name), func(d *v1alpha1.ApplicationDefinition) { d.Spec.Versions = append(d.Spec.Versions, f.version("1.1.0")) })
	await(t, f.seed, named(name), func(d *v1alpha1.ApplicationDefinition) bool { return len(d.Spec.Versions) == 2 })
	f.install(t, name)

	f.onHub.Stop()
	f.gate.Shut()
	note := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "one"}}
	require.NoError(t, f.user.Delete(t.Context(), note))
	f.awaitInstalled(t, name, "1.0.0")
	edit(t, f.user, types.NamespacedName{Namespace: name, Name: "one"}, func(i *v1alpha1.ApplicationInstallation) {
		i.Spec.ApplicationRef.Version = "1.1.0"
	})
	f.awaitInstalled(t, name, "1.1.0")
	edit(t, f.hub, named(name), func(d *v1alpha1.ApplicationDefinition) { d.Spec.Description = "the hub's" })
	edit(t, f.seed, named(name), func(d *v1alpha1.ApplicationDefinition) { d.Spec.Description = "the seed's" })
	await(t, f.user, named(name), func(d *v1alpha1.ApplicationDefinition) bool { return d.Spec.Description == "the seed's" })

	require.NoError(t, f.gate.Open())
	f.onHub = hub.Start(t, f.hubAt, controllers)
	await(t, f.seed, named(name), func(d *v1alpha1.ApplicationDefinition) bool { return d.Spec.Description == "the hub's" })
	await(t, f.user, named(name), func(d *v1alpha1.ApplicationDefinition) bool { return d.Spec.Description == "the hub's" })
	used := []v1alpha1.VersionUsage{{Version: "1.1.0", Count: 1, Installations: []string{"waybill-system/europe/waybill-system/berlin/alone/one"}}}
	await(t, f.hub, named(name), func(d *v1alpha1.ApplicationDefinition) bool { return assert.ObjectsAreEqual(used, d.Status.UsedBy) })
}

// C47: what is in use in a seed that does not answer stays in use, however long that takes.
func TestSeed_thatIsDownHoldsWhatItUses(t *testing.T) {
	const name = "down"
	f := newFleet(t)
	f.define(t, name)
	f.install(t, name)
	await(t, f.hub, named(name), func(d *v1alpha1.ApplicationDefinition) bool { return len(d.Status.UsedBy) == 1 })

	f.gate.Shut()
	await(t, f.hub, inSystem(europe), func(kc *v1alpha1.KubernetesCluster) bool { return !kc.Status.Reachable })
	edit(t, f.hub, named(name), func(d *v1alpha1.ApplicationDefinition) { d.Spec.Versions = append(d.Spec.Versions, f.version("1.1.0")) })
	f.onHub.Stop()
	f.onHub = hub.Start(t, f.hubAt, controllers) // which has never seen the seed
	edit(t, f.hub, inSystem(europe), func(kc *v1alpha1.KubernetesCluster) {
		kc.Annotations = map[string]string{v1alpha1.ReconcileAtAnnotation: "restarted"}
	})
	await(t, f.hub, inSystem(europe), func(kc *v1alpha1.KubernetesCluster) bool { return kc.Status.LastHandledReconcileAt == "restarted" })
	require.NoError(t, f.hub.Delete(t.Context(), &v1alpha1.ApplicationDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	held := await(t, f.hub, named(name), func(d *v1alpha1.ApplicationDefinition) bool { return ready(d).Reason == v1alpha1.InUseReason })
	assert.Contains(t, ready(held).Message, "used by 1 installation: waybill-system/europe/waybill-system/berlin/down/one")
	assert.Contains(t, ready(held).Message, "cluster waybill-system/europe is not reachable")
	require.NoError(t, f.user.Delete(t.Context(), &v1alpha1.ApplicationInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "one"}}))
	awaitGone(t, f.user, &v1alpha1.ApplicationInstallation{}, types.NamespacedName{Namespace: name, Name: "one"})

	require.NoError(t, f.gate.Open())
	awaitGone(t, f.hub, &v1alpha1.ApplicationDefinition{}, named(name))
	awaitGone(t, f.seed, &v1alpha1.ApplicationDefinition{}, named(name))
	awaitGone(t, f.user, &v1alpha1.ApplicationDefinition{}, named(name))
}

// K29, K33: a seed that is removed loses the copies once nothing uses them, or keeps them as its own; and gets
// all of them when it comes back.
func TestSeed_leavesAndComesBack(t *testing.T) {
	const name, own = "coming", "own"
	f := newFleet(t)
	require.NoError(t, f.seed.Create(t.Context(), &v1alpha1.ApplicationDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: own}, Spec: v1alpha1.ApplicationDefinitionSpec{Versions: []v1alpha1.ApplicationVersion{f.version("1.0.0")}},
	}))
	f.define(t, name)
	f.install(t, name)
	await(t, f.hub, named(name), func(d *v1alpha1.ApplicationDefinition) bool { return len(d.Status.UsedBy) == 1 })
	kc := &v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: europe}}
	require.NoError(t, f.hub.Delete(t.Context(), kc))
	waits := await(t, f.hub, inSystem(europe), func(kc *v1alpha1.KubernetesCluster) bool { return ready(kc).Reason == v1alpha1.InUseReason })
	assert.Contains(t, ready(waits).Message, "ApplicationInstallation waybill-system/berlin/coming/one (in a cluster of the seed, of ApplicationDefinition coming)")

	edit(t, f.hub, inSystem(europe), func(kc *v1alpha1.KubernetesCluster) { kc.Spec.OnDelete = v1alpha1.DeleteAbandon })
	awaitGone(t, f.hub, kc, inSystem(europe))
	left := &v1alpha1.ApplicationDefinition{}
	require.NoError(t, f.seed.Get(t.Context(), named(name), left))
	assert.False(t, left.IsCopy(), "the seed goes on with a definition of its own")
	f.awaitInstalled(t, name, "1.0.0")
	await(t, f.hub, named(name), func(d *v1alpha1.ApplicationDefinition) bool { return len(d.Status.UsedBy) == 0 })

	// What was abandoned is not taken back: a user has to say whose it is.
	register(t, f.hub, europe, nil, v1alpha1.ClusterRoleSeed)
	foreign := await(t, f.hub, named(name), func(d *v1alpha1.ApplicationDefinition) bool { return ready(d).Reason == v1alpha1.CopyFailedReason })
	assert.Contains(t, ready(foreign).Message, "cluster waybill-system/europe: an ApplicationDefinition of that name already exists")
	assert.Contains(t, ready(foreign).Message, `to take it over, annotate this one with apps.waybill.dev/adopt: "true"`)
	for _, d := range f.owned(t) {
		if d.Name != own {
			edit(t, f.hub, named(d.Name), func(d *v1alpha1.ApplicationDefinition) {
				d.Annotations = map[string]string{v1alpha1.AdoptAnnotation: "true"}
			})
		}
	}
	await(t, f.hub, named(name), func(d *v1alpha1.ApplicationDefinition) bool {
		return ready(d).Status == metav1.ConditionTrue && len(d.Status.UsedBy) == 1
	})
	require.NoError(t, f.seed.Get(t.Context(), named(own), left))
	assert.False(t, left.IsCopy(), "what the seed has of its own is left alone")
}

// owned returns the definitions in the seed that are no copies.
func (f *fleet) owned(t *testing.T) []v1alpha1.ApplicationDefinition {
	t.Helper()
	list, owned := &v1alpha1.ApplicationDefinitionList{}, []v1alpha1.ApplicationDefinition{}
	require.NoError(t, f.seed.List(t.Context(), list))
	for _, d := range list.Items {
		if !d.IsCopy() {
			owned = append(owned, d)
		}
	}
	return owned
}
