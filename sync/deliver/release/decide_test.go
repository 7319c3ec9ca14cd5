package release_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	helmrelease "helm.sh/helm/v3/pkg/release"

	"waybill.dev/waybill/sync/deliver/release"
)

// K46, K47, K50, C54
func TestDecide(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const want = "wanted"
	ours := func(status helmrelease.Status, input string) release.Revision {
		return release.Revision{Status: status, Input: input, OwnerHash: "us", Changed: now.Add(-time.Minute)}
	}
	old := func(r release.Revision) release.Revision { r.Changed = now.Add(-time.Hour); return r }
	deployed, failed, superseded := helmrelease.StatusDeployed, helmrelease.StatusFailed, helmrelease.StatusSuperseded
	cases := map[string]struct {
		reason    string
		revisions []release.Revision
		want      release.Action
	}{
		"Absent":            {"nothing there", nil, release.ActionInstall},
		"InSync":            {"the input is the same", []release.Revision{ours(deployed, want)}, release.ActionNone},
		"OutOfSync":         {"the input is another", []release.Revision{ours(deployed, "other")}, release.ActionUpgrade},
		"ByHand":            {"a revision without our input was made by somebody else", []release.Revision{ours(superseded, want), ours(deployed, "")}, release.ActionUpgrade},
		"Foreign":           {"not ours", []release.Revision{{Status: deployed, Input: want, OwnerHash: "them"}}, release.ActionRefuse},
		"Unmarked":          {"nobody's, so not ours", []release.Revision{{Status: deployed}}, release.ActionRefuse},
		"ForeignPending":    {"not ours, whatever is going on", []release.Revision{{Status: helmrelease.StatusPendingInstall}}, release.ActionRefuse},
		"PendingInstall":    {"our own action was broken off", []release.Revision{ours(helmrelease.StatusPendingInstall, want)}, release.ActionUnlock},
		"PendingUpgrade":    {"our own action was broken off", []release.Revision{ours(deployed, "x"), ours(helmrelease.StatusPendingUpgrade, want)}, release.ActionUnlock},
		"SomebodyAtWork":    {"somebody upgrades our release by hand", []release.Revision{ours(helmrelease.StatusPendingUpgrade, "")}, release.ActionWait},
		"SomebodyGone":      {"and was killed long ago", []release.Revision{old(ours(helmrelease.StatusPendingRollback, ""))}, release.ActionUnlock},
		"FailedFirst":       {"no install has succeeded", []release.Revision{ours(failed, want)}, release.ActionInstall},
		"FailedTwice":       {"no install has succeeded", []release.Revision{ours(failed, "x"), ours(failed, want)}, release.ActionInstall},
		"FailedUpgrade":     {"there is something to upgrade", []release.Revision{ours(deployed, "x"), ours(failed, want)}, release.ActionUpgrade},
		"RolledBack":        {"our caller decides when to try again", []release.Revision{ours(superseded, "x"), ours(failed, want), ours(deployed, "")}, release.ActionUpgrade},
		"Uninstalling":      {"the uninstall is ended first", []release.Revision{ours(helmrelease.StatusUninstalling, want)}, release.ActionFinishUninstall},
		"Uninstalled":       {"history was kept by somebody", []release.Revision{ours(superseded, "x"), ours(helmrelease.StatusUninstalled, want)}, release.ActionInstall},
		"SupersededNewest":  {"odd, and corrected", []release.Revision{ours(superseded, want)}, release.ActionUpgrade},
		"UnknownToEverbody": {"odd, and corrected", []release.Revision{ours(deployed, "x"), ours(helmrelease.StatusUnknown, want)}, release.ActionUpgrade},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for i := range tc.revisions {
				tc.revisions[i].Number = i + 1
			}
			got := release.Decide(release.Observed{Revisions: tc.revisions, At: now}, release.Identity{OwnerHash: "us"}, want)
			assert.Equal(t, tc.want, got.Action, tc.reason)
			assert.NotEmpty(t, got.Why)
		})
	}
}

func TestDigest_changesWithWhatMakesADifference(t *testing.T) {
	base := release.Desired{
		Identity:    release.Identity{Namespace: "a", Name: "web", Owner: "o", OwnerHash: "h"},
		ChartDigest: "sha256:1",
		Values:      map[string]any{"a": map[string]any{"x": 1, "y": []any{1, 2}}},
	}
	digest := func(change func(*release.Desired)) string {
		d := base
		change(&d)
		got, err := d.Digest()
		assert.NoError(t, err)
		return got
	}
	same := digest(func(*release.Desired) {})
	assert.Len(t, same, 40)
	assert.Equal(t, same, digest(func(d *release.Desired) { d.Values = map[string]any{"a": map[string]any{"y": []any{1, 2}, "x": 1}} }))
	assert.Equal(t, same, digest(func(d *release.Desired) {
		d.Options = release.Options{Timeout: time.Hour, Atomic: true, HistoryLimit: 9, DisableHooks: true}
	}), "how to get there makes no difference")
	assert.Equal(t, same, digest(func(d *release.Desired) { d.Options.CRDs = "Create" }), "that is the default")
	for name, change := range map[string]func(*release.Desired){
		"chart":  func(d *release.Desired) { d.ChartDigest = "sha256:2" },
		"values": func(d *release.Desired) { d.Values = map[string]any{"a": 1} },
		"owner":  func(d *release.Desired) { d.Owner = "other" },
		"crds":   func(d *release.Desired) { d.Options.CRDs = "Skip" },
		"policy": func(d *release.Desired) { d.Options.CRDs = "CreateReplace" },
		"lookup": func(d *release.Desired) { d.Options.Lookup = true },   // templates see something else
		"as":     func(d *release.Desired) { d.Options.As = "deployer" }, // it may not be allowed what another was
	} {
		assert.NotEqual(t, same, digest(change), name)
	}
	_, err := release.Desired{Values: map[string]any{"f": func() {}}}.Digest()
	assert.Equal(t, release.ReasonValues, release.ReasonOf(err))
}
