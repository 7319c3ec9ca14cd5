package applicationinstallation

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/release"
	"waybill.dev/waybill/sync/reconcile"
)

func TestReleaseError_namesWhatFailed(t *testing.T) {
	cases := map[string]struct {
		reason   string
		action   release.Action
		revision int32
		err      error
		want     string
	}{
		"Install":         {"the first revision failed", release.ActionInstall, 1, errors.New("refused"), v1alpha1.InstallFailedReason},
		"InstallAnew":     {"an install takes the place of failed ones", release.ActionInstall, 3, errors.New("refused"), v1alpha1.InstallFailedReason},
		"Upgrade":         {"a revision was recorded", release.ActionUpgrade, 2, errors.New("refused"), v1alpha1.UpgradeFailedReason},
		"UpgradeUnmade":   {"refused before a revision was recorded", release.ActionUpgrade, 0, errors.New("refused"), v1alpha1.UpgradeFailedReason},
		"Unlock":          {"what was broken off was an upgrade", release.ActionUnlock, 2, errors.New("refused"), v1alpha1.UpgradeFailedReason},
		"UnlockOfInstall": {"what was broken off was the install", release.ActionUnlock, 1, errors.New("refused"), v1alpha1.InstallFailedReason},
		"Values": {"why says more than what", release.ActionUpgrade, 0,
			&release.Error{Reason: release.ReasonValues, Err: errors.New("replicas: wrong type")}, v1alpha1.InvalidValuesReason},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			result := release.Result{Decision: release.Decision{Action: tc.action}}
			result.Release.Revision = tc.revision
			var known *reconcile.Error
			require.ErrorAs(t, releaseError(result, tc.err), &known)
			assert.Equal(t, tc.want, known.Reason, tc.reason)
		})
	}
}
