package applicationinstallation

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/reconcile"
)

// C60: an installation that lacks a right says whose it is and how to get it; what is forbidden for another reason
// stays as it is.
func TestExplained_saysHowToGetARight(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, account, message, want string
	}{
		"account": {"its rights are those of its namespace", "deployer",
			`services is forbidden: User "system:serviceaccount:team-a:deployer" cannot create resource "services" in API group "" in the namespace "team-a"`,
			"; the installation acts as ServiceAccount team-a/deployer: bind it to a Role or ClusterRole that grants this"},
		"account grants": {"as little as it has itself", "deployer",
			`roles.rbac.authorization.k8s.io "web" is forbidden: user "system:serviceaccount:team-a:deployer" (groups=["a"]) is attempting to grant RBAC permissions not currently held:`,
			"; the installation acts as ServiceAccount team-a/deployer: bind it to a Role or ClusterRole that grants this"},
		"Waybill's own books": {"are not for the account", "deployer",
			`secrets is forbidden: User "system:serviceaccount:waybill-system:waybill-hub-access" cannot create resource "secrets" in API group ""`, ""},
		"itself": {"the kubeconfig has what the hub needs, and no more", "",
			`services is forbidden: User "system:serviceaccount:waybill-system:waybill-hub-access" cannot create resource "services" in API group "" in the namespace "team-a"`,
			"; the installation acts as Waybill itself, which has no right to this: set spec.serviceAccountName to a ServiceAccount that has, grant it to that user, or give that all rights, somehow"},
		"itself grants": {"as little as it has itself", "",
			`clusterroles.rbac.authorization.k8s.io "web" is forbidden: user "hub" (groups=["a"]) is attempting to grant RBAC permissions not currently held:`,
			"; the installation acts as Waybill itself, which has no right to this: set spec.serviceAccountName to a ServiceAccount that has, grant it to that user, or give that all rights, somehow"},
		"quota":     {"no right helps", "", `pods "web" is forbidden: exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1`, ""},
		"admission": {"no right helps", "", `admission webhook "a.example.com" denied the request: no`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan{inst: &v1alpha1.ApplicationInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "web"}}, allRights: func() string { return "somehow" }}
			p.resolved.ServiceAccountName = tc.account
			err := explained(p, reconcile.Failed(v1alpha1.InstallFailedReason, "%w", errors.New(tc.message)))
			assert.EqualError(t, err, tc.message+tc.want, tc.reason)
			reason := v1alpha1.ForbiddenReason
			if tc.want == "" {
				reason = v1alpha1.InstallFailedReason
			}
			assert.Equal(t, reason, reconcile.ReasonOf(err), tc.reason)
		})
	}
}
