package webhooks_test

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// on are permissions with several verbs on a resource, one each.
func on(group, resource string, verbs ...string) []permission {
	var all []permission
	for _, verb := range verbs {
		all = append(all, in(group, resource, verb))
	}
	return all
}

func concat(some ...[]permission) []permission {
	var all []permission
	for _, s := range some {
		all = append(all, s...)
	}
	return all
}

// dataDeputies are the kinds of document S among the deputies. Users of these tests may write all of
// our kinds anyway, but not list them.
func dataDeputies(t *testing.T, admin client.Client) map[string]deputy {
	t.Helper()
	plain, hooks := class(t, admin, nil), class(t, admin, withHooks)
	cold := class(t, admin, func(c *v1alpha1.ApplicationSnapshotClass) { c.Quiesce = v1alpha1.QuiesceScaleDown })
	restore := []permission{in(v1alpha1.Group, "applicationsnapshots", "restore", "monday")}
	exec, claims := on("", "pods/exec", "create"), on("", "persistentvolumeclaims", "create", "update", "delete")
	scale := concat(on("apps", "deployments/scale", "update"), on("apps", "statefulsets/scale", "update"))
	patchScale := rule("apps", []string{"deployments/scale"}, "patch")
	shown := concat(on(v1alpha1.Group, "applications", "list"), on("", "pods", "create"))
	services := on("", "services", "create", "get", "list", "patch", "delete")
	const rbac = rbacv1.GroupName
	restored := func(kinds ...string) func(string) client.Object {
		return func(ns string) client.Object {
			readySnapshot(t, admin, ns, kinds...)
			return newRestore(ns, "")
		}
	}
	return map[string]deputy{
		"ApplicationSnapshot, hooks": {"they run commands", func(ns string) client.Object { return newSnapshot(ns, hooks.Name) }, exec, nil},
		"ApplicationSnapshot, cold":  {"the application is down for a while", func(ns string) client.Object { return newSnapshot(ns, cold.Name) }, scale, &patchScale},
		"ApplicationSnapshot, class to come": {"it may have hooks, and scale down", func(ns string) client.Object { return newSnapshot(ns, "to-come") },
			concat(exec, scale), nil},
		"ApplicationSnapshot, content": {"it is anybody's data", func(ns string) client.Object { return newBound(ns, plain.Name, "of-others") },
			[]permission{inCluster(in(v1alpha1.Group, "applicationsnapshotcontents", "use", "of-others"))}, nil},
		"StatefulApplication": {"it reveals what is in the snapshot, and creates it", restored("services"), concat(restore, shown, services), nil},
		"StatefulApplication, roles": {"they give rights", restored("rolebindings."+rbac, "roles."+rbac), concat(restore, shown,
			on(rbac, "rolebindings", "create", "get", "list", "patch", "delete"), on(rbac, "roles", "escalate", "bind"), on(rbac, "clusterroles", "bind"),
			on(rbac, "roles", "create", "get", "list", "patch", "delete")), nil},
		"StatefulApplication, hooks": {"others run them, too", restored("hookactions." + v1alpha1.Group),
			concat(restore, shown, on(v1alpha1.Group, "hookactions", "list"), exec), nil},
		"StatefulApplication, installation": {"it installs", restored("applicationinstallations." + v1alpha1.Group),
			concat(restore, shown, on(v1alpha1.Group, "applicationinstallations", "list"), on(v1alpha1.Group, "applicationdefinitions", "install"),
				on("", "secrets", "get"), on("", "configmaps", "get"), exec, scale), nil},
		"StatefulApplication, installation of a definition": {"it installs that one", func(ns string) client.Object {
			definedSnapshot(t, admin, ns)
			return newRestore(ns, "")
		}, concat(restore, shown, on(v1alpha1.Group, "applicationinstallations", "list"),
			[]permission{in(v1alpha1.Group, "applicationdefinitions", "install", "web")}, on("", "secrets", "get"), on("", "configmaps", "get"), exec, scale), nil},
		"ApplicationRollback": {"it replaces objects and volumes", func(ns string) client.Object {
			readySnapshot(t, admin, ns, "services")
			return newRollback(ns, plain.Name)
		}, concat(restore, shown, services, on("", "services", "update"), claims, scale), nil},
		"ApplicationRollback, hooks": {"it takes a snapshot first", func(ns string) client.Object {
			readySnapshot(t, admin, ns, "services")
			return newRollback(ns, hooks.Name)
		}, concat(restore, shown, services, on("", "services", "update"), claims, scale, exec), nil},
	}
}
