package applicationinstallation

import (
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/reconcile"
)

// K9: an installation that is deleted waits for others that are, and without limit only for those that its own users
// can help.
func TestWaitForDependents_hasALimit(t *testing.T) {
	dependent := func(namespace, reason string) *v1alpha1.ApplicationInstallation {
		i := &v1alpha1.ApplicationInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop", DeletionTimestamp: &metav1.Time{Time: time.Unix(1, 0)}}}
		conditions.MarkFalse(i, v1alpha1.ReadyCondition, reason, "why")
		return i
	}
	const elsewhere = "waiting 10 minutes at most for installations of other namespaces that depend on it to be gone: 1"
	const here = "waiting for ApplicationInstallation data/shop, which depends on it, to be gone"
	for name, c := range map[string]struct {
		reason     string
		dependents []*v1alpha1.ApplicationInstallation
		since      time.Duration
		message    string
	}{
		"here":                     {"its users see what it waits for", []*v1alpha1.ApplicationInstallation{dependent("data", v1alpha1.DeletingReason)}, 24 * time.Hour, here},
		"here, fails":              {"it may succeed yet", []*v1alpha1.ApplicationInstallation{dependent("data", v1alpha1.UninstallFailedReason)}, 0, here},
		"here, fails, late":        {"it may never succeed", []*v1alpha1.ApplicationInstallation{dependent("data", v1alpha1.UninstallFailedReason)}, patience, ""},
		"elsewhere":                {"it is not named", []*v1alpha1.ApplicationInstallation{dependent("secret", v1alpha1.DeletingReason)}, patience - 1, elsewhere},
		"elsewhere, late":          {"users of another namespace do not hold up this one", []*v1alpha1.ApplicationInstallation{dependent("secret", v1alpha1.DeletingReason)}, patience, ""},
		"here and elsewhere":       {"it is only counted", []*v1alpha1.ApplicationInstallation{dependent("secret", v1alpha1.DeletingReason), dependent("data", v1alpha1.DeletingReason)}, 0, "waiting for ApplicationInstallation data/shop (and 1 more), which depends on it, to be gone"},
		"here and elsewhere, late": {"only what is here still counts", []*v1alpha1.ApplicationInstallation{dependent("secret", v1alpha1.DeletingReason), dependent("data", v1alpha1.DeletingReason)}, patience, here},
	} {
		t.Run(name, func(t *testing.T) {
			inst := &v1alpha1.ApplicationInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: "data", Name: "db"}}
			err := waitForDependents(inst, c.dependents, c.since)
			if c.message == "" {
				require.NoError(t, err, c.reason)
				return
			}
			require.EqualError(t, err, c.message, c.reason)
			assert.Equal(t, v1alpha1.DeletingReason, reconcile.ReasonOf(err))
		})
	}
}
