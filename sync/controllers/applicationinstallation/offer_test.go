package applicationinstallation_test

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

// place creates the KubernetesCluster of the cluster that the controller drives.
func (w *world) place(name string) *v1alpha1.KubernetesCluster {
	w.T.Helper()
	kc := &v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Namespace: hub.SystemNamespace, Name: name}}
	w.Create(kc)
	return kc
}

// forSome has a definition offered to clusters that have a label of the test's own.
func (w *world) forSome(d *v1alpha1.ApplicationDefinitionSpec) {
	d.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"for": w.Namespace}}
}

func (w *world) offerTo(kc *v1alpha1.KubernetesCluster, offered bool) {
	w.T.Helper()
	hub.Change(w.World, kc, func(k *v1alpha1.KubernetesCluster) {
		if k.Labels = nil; offered {
			k.Labels = map[string]string{"for": w.Namespace}
		}
	})
}

// notOffered is what an installation says of a definition that does not exist, for all that its cluster
// can see.
func notOffered(definition string) string {
	return `the hub offers no ApplicationDefinition "` + definition + `" to this cluster`
}

// C45, C59: what is not offered to the cluster is not installed there; what is installed stays, and can
// be upgraded.
func TestInstallation_waitsForAnOffer(t *testing.T) {
	w := newWorld(t)
	definition := w.define(w.forSome)
	kc := w.place("local")
	inst := w.install(nil)
	assert.Equal(t, notOffered(w.Namespace), hub.AwaitReason(w.World, inst, v1alpha1.DefinitionNotFoundReason))
	assert.Empty(t, w.releases("web"))

	w.offerTo(kc, true)
	hub.AwaitReady(w.World, inst)
	require.NoError(t, w.Client.Get(t.Context(), client.ObjectKeyFromObject(kc), kc))
	assert.Equal(t, map[string]string{w.Namespace: string(definition.UID)}, kc.Status.Definitions, "the hub knows")

	w.offerTo(kc, false)
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { i.Spec.ApplicationRef.Version = "9.9.9" })
	assert.Equal(t, `ApplicationDefinition "`+w.Namespace+`" has no version "9.9.9"`, hub.AwaitReason(w.World, inst, v1alpha1.DefinitionNotFoundReason),
		"what else is offered to others is not named")
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { i.Spec.ApplicationRef.Version = "1.1.0" })
	hub.AwaitReady(w.World, inst)
	require.NoError(t, w.Client.Delete(t.Context(), inst))
	w.AwaitGone(&v1alpha1.ApplicationInstallation{}, "web")
	assert.False(t, w.Exists(&appsv1.Deployment{}, "web"))
}

// C45, C59: the hub writes down once per definition what was begun in a cluster, however many
// installations there are of it.
func TestInstallation_isRecordedOnceOnTheHub(t *testing.T) {
	w := newWorld(t)
	kc := w.place("local")
	definition := w.define(nil)
	since, err := w.Cluster.AuditMark(t.Context())
	require.NoError(t, err)
	insts := make([]*v1alpha1.ApplicationInstallation, 5)
	for i := range insts {
		insts[i] = &v1alpha1.ApplicationInstallation{
			ObjectMeta: metav1.ObjectMeta{Name: "web-" + string(rune('a'+i))},
			Spec:       v1alpha1.ApplicationInstallationSpec{ApplicationRef: v1alpha1.ApplicationReference{Name: w.Namespace, Version: "1.0.0"}},
		}
		w.Create(insts[i])
	}
	for _, inst := range insts {
		hub.AwaitReady(w.World, inst)
	}
	writes, err := w.Cluster.Requests(t.Context(), since, env.ByUser(hub.Identity), env.Writes)
	require.NoError(t, err)
	var recorded []string
	for _, r := range writes {
		if strings.Contains(r.URI, "/kubernetesclusters/") {
			recorded = append(recorded, r.Verb+" "+r.URI)
		}
	}
	assert.Len(t, recorded, 1, "%v", recorded)
	require.NoError(t, w.Client.Get(t.Context(), client.ObjectKeyFromObject(kc), kc))
	assert.Equal(t, map[string]string{w.Namespace: string(definition.UID)}, kc.Status.Definitions)

	// Who prunes it does not know what was begun meanwhile.
	require.NoError(t, w.Client.Status().Patch(t.Context(), kc, client.RawPatch(types.MergePatchType, []byte(`{"status":{"definitions":null}}`))))
	require.True(t, w.Eventually(func() bool {
		require.NoError(t, w.Client.Get(t.Context(), client.ObjectKeyFromObject(kc), kc))
		return len(kc.Status.Definitions) == 1
	}), "it is recorded again")
}

// C45, C59: a process that begins knows what was begun before it.
func TestInstallation_isKeptAcrossARestart(t *testing.T) {
	t.Parallel()
	w, process := newAway(t)
	kc := w.place(away.Name)
	w.define(w.forSome)
	w.offerTo(kc, true)
	process.Clusters.Ensure(away, "a", nil)
	inst := hub.AwaitReady(w.World, w.install(nil))
	process.Stop()
	w.offerTo(kc, false)

	process = hub.Start(t, w.Cluster, drive)
	t.Cleanup(process.Stop)
	process.Clusters.Ensure(away, "a", nil)
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { i.Spec.ApplicationRef.Version = "1.1.0" })
	hub.AwaitReady(w.World, inst)
}

// C45, C59: a user who writes the status of an installation gets nothing that is not offered to the
// cluster, and learns nothing of it: neither a version, nor that there is such a definition.
func TestInstallation_forgedStatusTakesNothing(t *testing.T) {
	cases := map[string]struct {
		reason string
		forge  func(i *v1alpha1.ApplicationInstallation)
	}{
		"Application": {
			reason: "it says that it is installed",
			forge:  func(*v1alpha1.ApplicationInstallation) {},
		},
		"NoVersion": {
			reason: "it asks for whatever version it has",
			forge:  func(i *v1alpha1.ApplicationInstallation) { i.Spec.ApplicationRef.Version = "" },
		},
		"UnknownVersion": {
			reason: "it asks which versions there are",
			forge: func(i *v1alpha1.ApplicationInstallation) {
				i.Spec.ApplicationRef.Version, i.Status.Application.Version = "9.9.9", "9.9.9"
			},
		},
		"Inventory": {
			reason: "it says what was installed, with options of its own",
			forge: func(i *v1alpha1.ApplicationInstallation) {
				i.Spec.DeployOptions = &v1alpha1.DeployOptions{Helm: &v1alpha1.HelmDeployOptions{Wait: true}}
				i.Status.Inventory = &v1alpha1.Inventory{}
				i.Status.Release = &v1alpha1.ReleaseStatus{Name: "web", Namespace: i.Namespace, Revision: 1, Status: "deployed", RecordDigest: "0"}
			},
		},
		"Kustomize": {
			reason: "it says that the definition has another method",
			forge:  func(i *v1alpha1.ApplicationInstallation) { i.Status.Application.Method = v1alpha1.MethodKustomize },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.repo = newChartRepo(t)
			w.place("local")
			w.define(func(d *v1alpha1.ApplicationDefinitionSpec) {
				w.forSome(d)
				d.Versions[0].Template.Values = values(t, map[string]any{"page": map[string]any{"text": "s3cr3t"}})
			})
			messages := map[string]string{}
			for definition, name := range map[string]string{w.Namespace: "withheld", "none-" + w.Namespace: "unknown"} {
				inst := &v1alpha1.ApplicationInstallation{
					ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name},
					Spec:       v1alpha1.ApplicationInstallationSpec{ApplicationRef: v1alpha1.ApplicationReference{Name: definition, Version: "1.0.0"}},
				}
				inst.Status.Application = &v1alpha1.ResolvedApplication{Name: definition, Version: "1.0.0", Method: v1alpha1.MethodHelm, Namespace: w.Namespace}
				tc.forge(inst)
				forged := inst.Status
				w.Create(inst)
				hub.Await(w.World, inst, "it is looked at", func(i *v1alpha1.ApplicationInstallation) bool { return conditions.Has(i, v1alpha1.ReadyCondition) })
				before := inst.DeepCopy()
				inst.Status.Application, inst.Status.Inventory, inst.Status.Release = forged.Application, forged.Inventory, forged.Release
				require.NoError(t, w.Client.Status().Patch(t.Context(), inst, client.MergeFrom(before)))
				hub.Reconcile(w.World, inst)
				messages[name] = strings.ReplaceAll(conditions.GetReason(inst, v1alpha1.ReadyCondition)+": "+conditions.GetMessage(inst, v1alpha1.ReadyCondition), definition, "it")
			}
			assert.Equal(t, messages["unknown"], messages["withheld"], tc.reason)
			assert.Contains(t, messages["withheld"], notOffered("it"))
			assert.Empty(t, w.repo.Requests(), "nothing is fetched: %s", tc.reason)
			assert.Empty(t, w.releases("withheld"))
		})
	}
}
