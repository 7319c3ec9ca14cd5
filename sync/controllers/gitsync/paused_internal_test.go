package gitsync

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/delivery"
	"waybill.dev/waybill/sync/reconcile"
	"waybill.dev/waybill/sync/source/git"
)

// newest is a session that wants the revision of a commit.
func newest(commit, digest string, targets ...*target) *session {
	x := &session{
		desired: desired{digest: digest, count: 2, source: source{revision: git.Revision{Ref: "main", Commit: commit}}},
		targets: map[string]*target{},
	}
	for _, t := range targets {
		x.targets[t.name] = t
	}
	return x
}

// P11: that a cluster has a revision does not say that it has what is wanted: the spec may name another
// folder of it by now.
func TestIsCurrent(t *testing.T) {
	const generation = 3
	revision := git.Revision{Ref: "main", Commit: "abc"}.String()
	cases := map[string]struct {
		reason string
		target target
		want   bool
	}{
		"delivered":          {"this process has delivered it", target{achieved: achieved{delivered: "digest", revision: revision}}, true},
		"another folder":     {"the revision is the same, and what it renders to is not", target{achieved: achieved{delivered: "other", revision: revision}}, false},
		"restored":           {"the status says so, of the spec as it stands", target{achieved: achieved{restored: generation, revision: revision}}, true},
		"restored, edited":   {"the spec has changed since", target{achieved: achieved{restored: generation - 1, revision: revision}}, false},
		"restored, older":    {"another revision is wanted", target{achieved: achieved{restored: generation, revision: "main@sha1:old"}}, false},
		"never delivered to": {"nothing says so", target{}, false},
		"leaving":            {"nothing is to be there", target{achieved: achieved{delivered: "digest"}, leaving: true}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &scope{gs: &v1alpha1.GitSync{ObjectMeta: metav1.ObjectMeta{Generation: generation}}, session: newest("abc", "digest", &tc.target)}
			assert.Equal(t, tc.want, s.isCurrent(&tc.target), tc.reason)
		})
	}
}

// P11: Ready, the message and the revision count what is there in every selected cluster.
func TestReport_pausedClusters(t *testing.T) {
	const old = "main@sha1:old"
	has := func(name string) *target {
		return &target{name: name, achieved: achieved{delivered: "digest"}, state: delivery.State{Phase: delivery.Delivered, Digest: "digest"}}
	}
	paused := func(t *target) *target {
		t.state = delivery.State{Lost: errPaused}
		return t
	}
	lacks := func(name string) *target {
		return paused(&target{name: name, achieved: achieved{delivered: "older", revision: old}})
	}
	leaving := lacks("gone")
	leaving.leaving = true
	cases := map[string]struct {
		reason            string
		targets           []*target
		unknown, revision string
		message           string
	}{
		"none": {"the usual case", []*target{has("berlin"), has("oslo")}, "", "main@sha1:new",
			"applied main@sha1:new: 2 objects in 2 clusters"},
		"up to date": {"it was delivered before the cluster was paused", []*target{paused(has("berlin")), has("oslo")}, "", "main@sha1:new",
			"applied main@sha1:new: 2 objects in 2 clusters; 1 of 2 clusters is paused, without drift correction: berlin"},
		"behind": {"it was not delivered", []*target{lacks("berlin"), has("oslo")}, v1alpha1.SuspendedReason, old,
			"1 of 2 clusters is paused, and not up to date: berlin; to continue there, set spec.paused of the KubernetesCluster to false; applied main@sha1:new: 2 objects in 1 cluster"},
		"all behind": {"nothing was delivered", []*target{lacks("berlin"), lacks("oslo")}, v1alpha1.SuspendedReason, old,
			"2 of 2 clusters are paused, and not up to date: berlin, oslo; to continue there, set spec.paused of the KubernetesCluster to false; main@sha1:new is applied nowhere"},
		"to be left": {"its objects stay", []*target{leaving, has("oslo")}, v1alpha1.SuspendedReason, old,
			"1 of 2 clusters is paused, and not up to date: gone; to continue there, set spec.paused of the KubernetesCluster to false; applied main@sha1:new: 2 objects in 1 cluster"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			gs := &v1alpha1.GitSync{Spec: v1alpha1.GitSyncSpec{ClusterSelector: &metav1.LabelSelector{}}, Status: v1alpha1.GitSyncStatus{Revision: old}}
			s := &scope{gs: gs, now: time.Now(), session: newest("new", "digest", tc.targets...)}
			outcome, err := s.report()
			assert.NoError(t, err)
			assert.Equal(t, reconcile.Outcome{Unknown: tc.unknown, Message: tc.message}, outcome, tc.reason)
			assert.Equal(t, tc.revision, gs.Status.Revision, tc.reason)
			for _, c := range gs.Status.Clusters {
				target := s.session.targets[c.Name]
				assert.Equal(t, target.achieved.delivered == "digest", c.Ready, c.Name)
				assert.Equal(t, target.paused(), c.Reason == v1alpha1.SuspendedReason, c.Name)
			}
		})
	}
}
