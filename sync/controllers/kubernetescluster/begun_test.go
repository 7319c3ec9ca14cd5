package kubernetescluster_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// begun records definitions, as the controller of installations does.
func (h *hub) begun(name string, definitions map[string]string) {
	h.t.Helper()
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"definitions": definitions}})
	require.NoError(h.t, err)
	require.NoError(h.t, h.Status().Patch(h.t.Context(), h.get(name), client.RawPatch(types.MergePatchType, patch)))
}

// C45, C59: what was begun in a cluster is known as long as there is an installation of it, and in that
// cluster only.
func TestKubernetesCluster_forgetsWhatIsNotInstalledAnyMore(t *testing.T) {
	h := newHub(t, options{})
	h.add("berlin", userCluster(t).Kubeconfig())
	h.until("berlin", drives, "it is engaged")
	user, ns := newClient(t, userCluster(t).RESTConfig()), userCluster(t).Namespace(t)
	web := install(t, user, ns, "web")
	shop := install(t, user, ns, "shop", func(i *v1alpha1.ApplicationInstallation) { i.Spec.ApplicationRef.Name = "shop" })
	h.begun("berlin", map[string]string{"web": "1", "shop": "2"})
	require.NoError(t, user.Delete(t.Context(), web))
	kc := h.until("berlin", func(kc *v1alpha1.KubernetesCluster) bool { return len(kc.Status.Definitions) == 1 }, "web is gone")
	assert.Equal(t, map[string]string{"shop": "2"}, kc.Status.Definitions)

	h.change("berlin", func(kc *v1alpha1.KubernetesCluster) {
		kc.Annotations = map[string]string{v1alpha1.AcceptClusterUIDAnnotation: kubeSystemUID(t, hubCluster(t))}
	})
	h.secret("berlin", map[string][]byte{"value": hubCluster(t).Kubeconfig()})
	kc = h.until("berlin", func(kc *v1alpha1.KubernetesCluster) bool { return kc.Status.UID == kubeSystemUID(t, hubCluster(t)) }, "the change was accepted before")
	assert.Empty(t, kc.Status.Definitions, "that was in another cluster")
	require.NoError(t, user.Delete(t.Context(), shop))
}

// C45, C59: who takes a cluster over knows what was begun in it under another name.
func TestKubernetesCluster_handsOverWhatWasBegun(t *testing.T) {
	cases := map[string]struct {
		reason string
		// takeOver has b take the cluster over from a; begin has an installation begun there.
		takeOver func(h, team *hub, begin func(on *hub))
	}{
		"TheFirstIsDeleted": {
			reason: "it is renamed",
			takeOver: func(h, _ *hub, begin func(*hub)) {
				h.add("a", userCluster(h.t).Kubeconfig())
				h.until("a", drives, "it is alone")
				begin(h)
				h.add("b", userCluster(h.t).Kubeconfig())
				h.until("b", yields, "it is not alone")
				require.NoError(h.t, h.Delete(h.t.Context(), h.get("a")))
				h.gone("a")
			},
		},
		"RecordedAfterwards": {
			reason: "it was there before the installation",
			takeOver: func(h, _ *hub, begin func(*hub)) {
				h.add("a", userCluster(h.t).Kubeconfig())
				h.until("a", drives, "it is alone")
				h.add("b", userCluster(h.t).Kubeconfig())
				h.until("b", yields, "it is not alone")
				begin(h)
				h.until("b", func(kc *v1alpha1.KubernetesCluster) bool { return len(kc.Status.Definitions) == 1 }, "it is told")
				require.NoError(h.t, h.Delete(h.t.Context(), h.get("a")))
				h.gone("a")
			},
		},
		"OfTheSystemNamespace": {
			reason: "it comes before that of a team",
			takeOver: func(h, team *hub, begin func(*hub)) {
				team.add("a", userCluster(h.t).Kubeconfig(), func(kc *v1alpha1.KubernetesCluster) { kc.Labels[label] = h.ns })
				team.until("a", drives, "it is alone")
				begin(team)
				h.add("b", userCluster(h.t).Kubeconfig())
				team.until("a", yields, "it gives way")
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			user, ns := newClient(t, userCluster(t).RESTConfig()), userCluster(t).Namespace(t)
			h := newHub(t, options{})
			team := &hub{Client: h.Client, t: t, ns: hubCluster(t).Namespace(t), registry: h.registry}
			t.Cleanup(team.clear)
			var inst *v1alpha1.ApplicationInstallation
			tc.takeOver(h, team, func(on *hub) {
				inst = install(t, user, ns, "web")
				on.begun("a", map[string]string{"web": "1"})
			})
			kc := h.until("b", drives, tc.reason)
			assert.Equal(t, map[string]string{"web": "1"}, kc.Status.Definitions, tc.reason)
			require.NoError(t, user.Delete(t.Context(), inst))
			h.until("b", func(kc *v1alpha1.KubernetesCluster) bool { return len(kc.Status.Definitions) == 0 }, "it is not installed any more")
		})
	}
}
