package application_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// C35, C44: API servers let no user change a Role who does not hold what it grants, but for its
// ownerReferences. So an agent without these rights owns what is annotated, and says of what is not
// how it comes to be.
func TestRoles_areOwnedWithoutTheirRights(t *testing.T) {
	w := newAgentWorld(t, right("rbac.authorization.k8s.io", "roles"))
	reader := func(meta metav1.ObjectMeta) *rbacv1.Role {
		return &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"delete"}}}}
	}
	annotated, bare := reader(member("annotated")), reader(metav1.ObjectMeta{Name: "bare", Labels: labels()})
	w.Create(annotated)
	w.Create(bare)
	role := func(name string) v1alpha1.ApplicationComponent {
		return v1alpha1.ApplicationComponent{Group: rbacv1.GroupName, Kind: "Role", Name: name}
	}
	app := shop(role("annotated"), role("bare"))
	w.Create(app)
	w.awaitOwned(annotated, app, true)
	hub.Await(w.World, app, "the way out is not told", func(app *v1alpha1.Application) bool {
		return component(app, "Role", "bare").Message == "exists, but cannot be annotated: patch roles.rbac.authorization.k8s.io is forbidden: "+
			"changing it requires the permissions that it grants: annotate it with kubernetes.io/application yourself, or grant the agent escalate and bind"
	})
	assert.Empty(t, bare.OwnerReferences)

	hub.Change(w.World, bare, func(r *rbacv1.Role) { r.Annotations = map[string]string{v1alpha1.ApplicationAnnotation: "shop"} })
	w.awaitOwned(bare, app, true)
	hub.AwaitReady(w.World, app)
}
