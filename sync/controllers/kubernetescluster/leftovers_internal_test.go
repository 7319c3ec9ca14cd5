package kubernetescluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"waybill.dev/waybill/api/v1alpha1"
)

// gitSyncAt is one that has objects in berlin.
func gitSyncAt(name string, change func(*v1alpha1.GitSync)) *v1alpha1.GitSync {
	gs := &v1alpha1.GitSync{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
	gs.Spec.ClusterSelector = &metav1.LabelSelector{}
	gs.Status.Clusters = []v1alpha1.GitSyncClusterStatus{{Name: "berlin", Leaving: true}}
	if change != nil {
		change(gs)
	}
	return gs
}

// installationOf is one that a GitSync has delivered; by hand without one.
func installationOf(gitSync string, change func(*v1alpha1.ApplicationInstallation)) *v1alpha1.ApplicationInstallation {
	inst := &v1alpha1.ApplicationInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	if gitSync != "" {
		inst.Annotations = map[string]string{v1alpha1.OwnerAnnotation: "hub/GitSync/team/" + gitSync}
	}
	if change != nil {
		change(inst)
	}
	return inst
}

func ending(reason string) func(*v1alpha1.ApplicationInstallation) {
	return func(inst *v1alpha1.ApplicationInstallation) {
		inst.DeletionTimestamp = &metav1.Time{Time: time.Unix(0, 0)}
		inst.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionFalse, Reason: reason, Message: "no rights"}}
	}
}

// C38: what goes without help is not to be deleted by users: a GitSync serves other clusters, too.
func TestLeftovers_adviseOnlyWhatIsNeeded(t *testing.T) {
	gone := func(gs *v1alpha1.GitSync) { gs.Status.Clusters = nil }
	const waiting = "waiting for what is left in the cluster: "
	cases := map[string]struct {
		reason    string
		gitSyncs  []client.Object
		installed *v1alpha1.ApplicationInstallation
		want      string
		help      bool
	}{
		"a GitSync": {"it leaves a cluster that is being deleted", []client.Object{gitSyncAt("apps", nil)}, nil,
			waiting + "what GitSync team/apps (of the hub) delivered is being deleted", false},
		"several": {"in the plural", []client.Object{gitSyncAt("apps", nil), gitSyncAt("base", nil)}, nil,
			waiting + "what GitSync team/apps (of the hub) delivered, what GitSync team/base (of the hub) delivered are being deleted", false},
		"its installation": {"the GitSync deletes it", []client.Object{gitSyncAt("apps", nil)}, installationOf("apps", nil),
			waiting + "what GitSync team/apps (of the hub) delivered is being deleted", false},
		"suspended": {"it does nothing", []client.Object{gitSyncAt("apps", func(gs *v1alpha1.GitSync) { gs.Spec.Suspend = true })}, nil,
			waiting + "GitSync team/apps (of the hub) is suspended: resume it, and it deletes what it delivered", true},
		"failing": {"somebody has to look", []client.Object{gitSyncAt("apps", func(gs *v1alpha1.GitSync) { gs.Status.Clusters[0].Message = "forbidden" })}, nil,
			waiting + "GitSync team/apps (of the hub) cannot delete what it delivered: forbidden", true},
		"by hand": {"nobody else deletes it", nil, installationOf("", nil),
			waiting + "ApplicationInstallation shop/web: delete it", true},
		"not pruned": {"the GitSync has left it there", []client.Object{gitSyncAt("apps", gone)}, installationOf("apps", nil),
			waiting + "ApplicationInstallation shop/web: delete it", true},
		"of its own cluster": {"the GitSync would deliver it again", []client.Object{gitSyncAt("apps", func(gs *v1alpha1.GitSync) {
			gs.Spec.ClusterSelector, gs.Status.Clusters = nil, nil
		})}, installationOf("apps", nil),
			waiting + "ApplicationInstallation shop/web of GitSync team/apps: remove it from the repository of that GitSync", true},
		"uninstalling": {"it is on its way", nil, installationOf("", ending(v1alpha1.DeletingReason)),
			waiting + "ApplicationInstallation shop/web is being deleted", false},
		"stuck": {"it needs help", nil, installationOf("", ending(v1alpha1.UninstallFailedReason)),
			waiting + "ApplicationInstallation shop/web cannot be uninstalled: no rights", true},
		"nothing": {"there is nothing to wait for", []client.Object{gitSyncAt("apps", gone)}, nil, "", false},
	}
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := &Reconciler{HubID: "hub", Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.gitSyncs...).Build()}
			s := &scope{kc: &v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "berlin"}}}
			left, list := &leftovers{}, &v1alpha1.ApplicationInstallationList{}
			if tc.installed != nil {
				list.Items = append(list.Items, *tc.installed)
			}
			gitSyncs, err := r.addGitSyncs(t.Context(), s, left)
			require.NoError(t, err)
			s.addInstallations(list, gitSyncs, left)
			if err := left.err(); tc.want == "" {
				assert.NoError(t, err, tc.reason)
			} else {
				assert.EqualError(t, err, tc.want, tc.reason)
			}
			assert.Equal(t, tc.help, !left.byThemselves(), tc.reason)
		})
	}
}
