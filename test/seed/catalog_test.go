package seed_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// K28, K29, K31, K40, K43-K46, C29, C45, C47: what is published on the hub is installed in the cluster of a
// seed, by the seed, and the hub knows.
func TestCatalog_reachesTheClustersOfASeed(t *testing.T) {
	const web = "web"
	f := newFleet(t)
	f.define(t, web)
	inSeed := await(t, f.seed, named(web), func(d *v1alpha1.ApplicationDefinition) bool { return ready(d).Status == metav1.ConditionTrue })
	assert.Equal(t, f.onHub.HubID, inSeed.Annotations[v1alpha1.CopyOfAnnotation])
	onHub := &v1alpha1.ApplicationDefinition{}
	require.NoError(t, f.hub.Get(t.Context(), named(web), onHub))
	assert.Equal(t, onHub.Spec, inSeed.Spec, "applications are installed from it")
	inUser := await(t, f.user, named(web), func(d *v1alpha1.ApplicationDefinition) bool { return d.Status.Versions == "1.0.0" })
	assert.Equal(t, f.onSeed.HubID, inUser.Annotations[v1alpha1.CopyOfAnnotation], "the seed maintains it, not the hub")
	assert.Nil(t, inUser.Spec.Versions[0].Template)

	f.install(t, web)
	used := []v1alpha1.VersionUsage{{Version: "1.0.0", Count: 1, Installations: []string{"waybill-system/europe/waybill-system/berlin/web/one"}}}
	await(t, f.hub, named(web), func(d *v1alpha1.ApplicationDefinition) bool { return assert.ObjectsAreEqual(used, d.Status.UsedBy) })
	kc := &v1alpha1.KubernetesCluster{}
	require.NoError(t, f.hub.Get(t.Context(), inSystem(europe), kc))
	assert.Empty(t, kc.Status.Installations)
	assert.Positive(t, kc.Status.InstallationCount)

	edit(t, f.hub, named(web), func(d *v1alpha1.ApplicationDefinition) { d.Spec.Versions = append(d.Spec.Versions, f.version("1.1.0")) })
	await(t, f.user, named(web), func(d *v1alpha1.ApplicationDefinition) bool { return len(d.Spec.Versions) == 2 })
	edit(t, f.user, types.NamespacedName{Namespace: web, Name: "one"}, func(i *v1alpha1.ApplicationInstallation) {
		i.Spec.ApplicationRef.Version = "1.1.0"
	})
	f.awaitInstalled(t, web, "1.1.0")
	await(t, f.seed, named(early), func(d *v1alpha1.ApplicationDefinition) bool { return d.IsCopy() })
}

// K32: the hub is the source of truth, and no user of a seed makes it lose anything.
func TestCopy_inASeedIsPutRight(t *testing.T) {
	f := newFleet(t)
	cases := map[string]struct {
		reason string
		change func(*v1alpha1.ApplicationDefinition)
	}{
		"Spec":         {"the hub says what is offered", func(d *v1alpha1.ApplicationDefinition) { d.Spec.Description = "mine" }},
		"AddedVersion": {"not even more than the hub offers", func(d *v1alpha1.ApplicationDefinition) { d.Spec.Versions = append(d.Spec.Versions, f.version("9")) }},
		"Template":     {"it would not be in the catalog of the seed any more", func(d *v1alpha1.ApplicationDefinition) { d.Spec.Versions[0].Template = nil }},
		"Mark":         {"it is the hub's", func(d *v1alpha1.ApplicationDefinition) { delete(d.Annotations, v1alpha1.CopyOfAnnotation) }},
		"Force": {"only the hub removes by force", func(d *v1alpha1.ApplicationDefinition) {
			d.Annotations[v1alpha1.ForceRemoveAnnotation] = "*"
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			definition := "right-" + strings.ToLower(name)
			f.define(t, definition)
			whole := await(t, f.seed, named(definition), func(d *v1alpha1.ApplicationDefinition) bool { return ready(d).Status == metav1.ConditionTrue })
			edit(t, f.seed, named(definition), tc.change)
			await(t, f.seed, named(definition), func(d *v1alpha1.ApplicationDefinition) bool {
				return assert.ObjectsAreEqual(whole.Spec, d.Spec) && assert.ObjectsAreEqual(whole.Annotations, d.Annotations)
			})
		})
	}
	t.Run("Deleted", func(t *testing.T) {
		f.define(t, "right-gone")
		was := await(t, f.seed, named("right-gone"), func(d *v1alpha1.ApplicationDefinition) bool { return ready(d).Status == metav1.ConditionTrue })
		require.NoError(t, f.seed.Delete(t.Context(), was))
		await(t, f.seed, named("right-gone"), func(d *v1alpha1.ApplicationDefinition) bool { return d.UID != was.UID && d.InCatalog() })
	})
}

// K33, C47: what is in use in a cluster of a seed holds the definition on the hub, and goes first.
func TestDefinition_isDeletedThroughASeed(t *testing.T) {
	const name = "leaving"
	f := newFleet(t)
	f.define(t, name)
	f.install(t, name)
	await(t, f.hub, named(name), func(d *v1alpha1.ApplicationDefinition) bool { return len(d.Status.UsedBy) == 1 })
	definition := &v1alpha1.ApplicationDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	require.NoError(t, f.hub.Delete(t.Context(), definition))
	held := await(t, f.hub, named(name), func(d *v1alpha1.ApplicationDefinition) bool { return ready(d).Reason == v1alpha1.InUseReason })
	assert.Contains(t, ready(held).Message, "used by 1 installation: waybill-system/europe/waybill-system/berlin/leaving/one")
	await(t, f.seed, named(name), func(d *v1alpha1.ApplicationDefinition) bool { return ready(d).Reason == v1alpha1.InUseReason })
	f.awaitInstalled(t, name, "1.0.0")

	edit(t, f.hub, named(name), func(d *v1alpha1.ApplicationDefinition) {
		d.Annotations = map[string]string{v1alpha1.ForceRemoveAnnotation: "*"}
	})
	awaitGone(t, f.user, &v1alpha1.ApplicationInstallation{}, types.NamespacedName{Namespace: name, Name: "one"})
	for _, c := range []client.Client{f.hub, f.seed, f.user} {
		awaitGone(t, c, definition, named(name))
	}
}

// K33, C28: a version that is removed by force goes in the clusters of seeds as well.
func TestVersion_isRemovedByForceThroughASeed(t *testing.T) {
	const name = "shrinking"
	f := newFleet(t)
	f.define(t, name)
	f.install(t, name)
	edit(t, f.hub, named(name), func(d *v1alpha1.ApplicationDefinition) {
		d.Annotations = map[string]string{v1alpha1.ForceRemoveAnnotation: "1.0.0"}
		d.Spec.Versions = []v1alpha1.ApplicationVersion{f.version("1.1.0")}
	})
	awaitGone(t, f.user, &v1alpha1.ApplicationInstallation{}, types.NamespacedName{Namespace: name, Name: "one"})
	await(t, f.hub, named(name), func(d *v1alpha1.ApplicationDefinition) bool { return len(d.Status.UsedBy) == 0 })
}

// C47: what a cluster of a seed lacks of what is enforced is said on the hub as well, until it is there.
func TestEnforced_inAClusterOfASeed(t *testing.T) {
	const name = "enforced"
	f := newFleet(t)
	theirs := &v1alpha1.ApplicationInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: name}}
	theirs.Spec.ApplicationRef = v1alpha1.ApplicationReference{Name: early, Version: "1.0.0"}
	require.NoError(t, client.IgnoreAlreadyExists(f.user.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: system}})))
	require.Eventually(t, func() bool { return f.user.Create(t.Context(), theirs) == nil }, hub.Limit, often, "its CRD is brought by the seed")
	f.define(t, name)
	edit(t, f.hub, named(name), func(d *v1alpha1.ApplicationDefinition) {
		d.Spec.Enforced, d.Spec.ClusterSelector = true, &metav1.LabelSelector{MatchLabels: map[string]string{"role": string(v1alpha1.ClusterRoleUser)}}
	})
	lacking := await(t, f.hub, named(name), func(d *v1alpha1.ApplicationDefinition) bool { return len(d.Status.Unprovided) == 1 })
	assert.Equal(t, "waybill-system/europe", lacking.Status.Unprovided[0].Cluster)
	assert.Contains(t, lacking.Status.Unprovided[0].Problem, "waybill-system/berlin: an installation of that name exists already")

	require.NoError(t, f.user.Delete(t.Context(), theirs))
	await(t, f.hub, named(name), func(d *v1alpha1.ApplicationDefinition) bool {
		return len(d.Status.Unprovided) == 0 && len(d.Status.UsedBy) == 1
	})
}

// K30, C29, C45: the hub is no seed of itself.
func TestSeed_thatIsTheHubGetsNothing(t *testing.T) {
	f := newFleet(t)
	here := &v1alpha1.KubernetesCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "here"}, Spec: v1alpha1.KubernetesClusterSpec{Role: v1alpha1.ClusterRoleSeed},
	}
	require.NoError(t, f.hub.Create(t.Context(), here))
	await(t, f.hub, inSystem("here"), func(kc *v1alpha1.KubernetesCluster) bool { return ready(kc).Status == metav1.ConditionTrue })
	f.define(t, "here")
	await(t, f.seed, named("here"), func(d *v1alpha1.ApplicationDefinition) bool { return d.IsCopy() })
	d := await(t, f.hub, named("here"), func(d *v1alpha1.ApplicationDefinition) bool { return ready(d).Status == metav1.ConditionTrue })
	assert.False(t, d.IsCopy())
	require.NoError(t, f.hub.Delete(t.Context(), here))
	awaitGone(t, f.hub, here, inSystem("here"))
	require.NoError(t, f.hub.Get(t.Context(), named("here"), d))
	assert.Nil(t, d.DeletionTimestamp)
}

// Who may write Secrets of a namespace could send the catalog and its credentials elsewhere.
func TestSeed_isInTheSystemNamespace(t *testing.T) {
	f := newFleet(t)
	elsewhere := &v1alpha1.KubernetesCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "mine"}, Spec: v1alpha1.KubernetesClusterSpec{Role: v1alpha1.ClusterRoleSeed},
	}
	require.NoError(t, f.hub.Create(t.Context(), elsewhere))
	key := client.ObjectKeyFromObject(elsewhere)
	refused := await(t, f.hub, key, func(kc *v1alpha1.KubernetesCluster) bool { return ready(kc).Reason == v1alpha1.InvalidSpecReason })
	assert.Contains(t, ready(refused).Message, "spec.role is Seed, which is allowed in namespace waybill-system only")
	_, err := f.onHub.Clusters.Get(key)
	require.Error(t, err)
	err = f.hub.Patch(t.Context(), refused, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"role":"User"}}`)))
	require.ErrorContains(t, err, "role is immutable")
	err = f.hub.Patch(t.Context(), refused, client.RawPatch(types.MergePatchType, []byte(`{"spec":null}`)))
	require.ErrorContains(t, err, "role is immutable")
	require.NoError(t, f.hub.Delete(t.Context(), elsewhere))
	awaitGone(t, f.hub, elsewhere, key)
}
