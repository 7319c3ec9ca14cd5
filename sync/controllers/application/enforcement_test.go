package application_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	rbacv1 "k8s.io/api/rbac/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

// newEnforcingWorld returns a world with an agent, on a cluster that checks who may write
// ownerReferences, as some distributions do.
func newEnforcingWorld(t *testing.T, own []rbacv1.PolicyRule, rights ...rbacv1.PolicyRule) *world {
	t.Helper()
	w := &world{hub.NewWorld(t, env.Shared(t, env.Options{
		Name: "enforcing", CRDs: []string{crds},
		APIServerFlags: []string{"--enable-admission-plugins=OwnerReferencesPermissionEnforcement"},
	}))}
	w.grant("waybill-agent", own...)
	w.grant("waybill-agent-components", rights...)
	w.startAgent()
	return w
}

// deletable is right, and what chart value agent.mayDelete adds.
func deletable(resource string) rbacv1.PolicyRule {
	rule := right("", resource)
	rule.Verbs = append(rule.Verbs, "delete")
	return rule
}

// A40, A62, C35: with the rights of the chart an Application owns its objects, and has its
// health check, where admission plugin OwnerReferencesPermissionEnforcement is on.
func TestEnforcement_rightsOfTheChartSuffice(t *testing.T) {
	w := newEnforcingWorld(t, agentRights(t), deletable("configmaps"))
	settings := configMap(member("settings"))
	w.Create(settings)
	app := shop(named("ConfigMap", "settings"))
	w.Create(app)
	w.awaitOwned(settings, app, true)
	hub.AwaitReady(w.World, app)

	hub.Change(w.World, app, func(app *v1alpha1.Application) { app.Spec.HealthCheck = healthCheck("check") })
	w.awaitPod(anyPod)
	hub.Change(w.World, app, func(app *v1alpha1.Application) { app.Spec.Components = nil })
	w.awaitOwned(settings, app, false)
	w.delete(app)
}

// C35: a right to delete that is missing is said on the Application, with what to grant; what is
// granted is used.
func TestEnforcement_saysThatTheRightToDeleteIsMissing(t *testing.T) {
	w := newEnforcingWorld(t, agentRights(t), right("", "configmaps"))
	settings := configMap(member("settings"))
	w.Create(settings)
	app := shop(named("ConfigMap", "settings"))
	w.Create(app)
	message := hub.AwaitReason(w.World, app, v1alpha1.ForbiddenReason)
	assert.Equal(t, "a component cannot be owned: patch configmaps is forbidden: "+
		"setting its ownerReferences requires permission to delete it: grant the agent delete", message)
	assert.Equal(t, v1alpha1.ForbiddenReason, reasonOf(app, v1alpha1.StalledCondition))

	w.grant("waybill-agent-components", deletable("configmaps"))
	w.awaitOwned(settings, app, true)
	hub.AwaitReady(w.World, app)
}

// The Pod of a health check holds up the deletion of its Application, for which an agent needs
// the right to its finalizers: where that is missing, the Application says so.
func TestEnforcement_saysThatTheRightToFinalizersIsMissing(t *testing.T) {
	without := slices.DeleteFunc(agentRights(t), func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.Resources, "applications/finalizers")
	})
	w := newEnforcingWorld(t, without)
	app := shop()
	app.Spec.HealthCheck = healthCheck("check")
	w.Create(app)
	message := hub.AwaitReason(w.World, app, v1alpha1.HealthCheckRefusedReason)
	assert.Equal(t, "create the Pod of the health check: pods is forbidden: "+
		"setting its ownerReferences requires permission to update applications/finalizers: grant it to the agent", message)

	w.grant("waybill-agent", agentRights(t)...)
	w.awaitPod(anyPod)
}
