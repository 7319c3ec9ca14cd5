package webhooks

import (
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"waybill.dev/waybill/api/v1alpha1"
)

// maxKinds is how many kinds of a snapshot are asked for one by one.
const maxKinds = 100

// needsQuiesce returns the rights to bring applications of a namespace to rest as a class says. If the
// class does not exist yet, it may come to say anything.
func needsQuiesce(namespace string, class *v1alpha1.ApplicationSnapshotClass) []need {
	var wanted []need
	if class == nil || len(class.PreHooks)+len(class.PostHooks) > 0 {
		wanted = append(wanted, needsExec(namespace, "hooks of the class run commands in Pods of the namespace"))
	}
	if class == nil || class.Quiesce == v1alpha1.QuiesceScaleDown {
		wanted = append(wanted, needsScale(namespace, "the class scales workloads to zero")...)
	}
	return wanted
}

// needsScale returns the right to scale workloads of a namespace, by whichever verb.
func needsScale(namespace, because string) []need {
	var wanted []need
	for _, workload := range []string{"deployments", "statefulsets"} {
		scale := authorizationv1.ResourceAttributes{Verb: "update", Group: "apps", Resource: workload, Subresource: "scale", Namespace: namespace}
		patch := scale
		patch.Verb = "patch"
		wanted = append(wanted, need{because: because, anyOf: []authorizationv1.ResourceAttributes{scale, patch}})
	}
	return wanted
}

// needsRestore returns the right to see what is in a snapshot: a user who restores it somewhere can
// read the Secrets and the data of the application.
func needsRestore(ref v1alpha1.SnapshotReference, namespace string) need {
	key := snapshotKey(ref, namespace)
	return needs("it reveals the Secrets and the data of the application", authorizationv1.ResourceAttributes{
		Verb: verbRestore, Group: v1alpha1.Group, Resource: applicationSnapshotResource, Namespace: key.Namespace, Name: key.Name,
	})
}

// needsObjects returns the rights to do with objects of some kinds what verbs say. The Application
// that comes with them shows, marks and, unless it observes, deletes objects of those kinds.
func needsObjects(namespace string, in *snapshotContents, because string, verbs ...string) []need {
	var kinds []schema.GroupResource
	var definition string
	if in != nil {
		kinds, definition = in.kinds, in.definition
	}
	if len(kinds) == 0 || len(kinds) > maxKinds {
		return []need{needs("which kinds the snapshot holds is not known", everything(namespace))}
	}
	var wanted []need
	application := schema.GroupResource{Group: v1alpha1.Group, Resource: applicationResource}
	for _, kind := range append([]schema.GroupResource{application}, kinds...) {
		for _, verb := range verbs {
			wanted = append(wanted, needs(because, authorizationv1.ResourceAttributes{
				Verb: verb, Group: kind.Group, Resource: kind.Resource, Namespace: namespace,
			}))
		}
		for _, verb := range []string{"get", "list", "patch", "delete"} {
			wanted = append(wanted, needs("the Application in the snapshot may own it", authorizationv1.ResourceAttributes{
				Verb: verb, Group: kind.Group, Resource: kind.Resource, Namespace: namespace,
			}))
		}
		wanted = append(wanted, needsBeside(namespace, kind, definition)...)
	}
	return distinct(wanted)
}

// needsBeside returns the rights that writing an object of a kind takes beside those on the kind: the
// API server and our own admission require them of a user who writes it, but would see our identity
// here.
func needsBeside(namespace string, kind schema.GroupResource, definition string) []need {
	right := func(verb, group, resource, because string) need {
		return needs(because, authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource, Namespace: namespace})
	}
	switch kind.Group {
	case rbacv1.GroupName:
		const because = "the snapshot holds Roles or RoleBindings"
		return []need{
			right("escalate", rbacv1.GroupName, "roles", because), right("bind", rbacv1.GroupName, "roles", because),
			right("bind", rbacv1.GroupName, "clusterroles", because),
		}
	case v1alpha1.Group:
		switch kind.Resource {
		case applicationResource:
			return []need{right("create", "", "pods", "the Application in the snapshot may have a health check")}
		case hookActionResource, executionHookResource:
			return []need{needsExec(namespace, "the snapshot holds hooks")}
		case applicationInstallationResource:
			// Creating Pods, which the Application takes, is enough to act as any ServiceAccount.
			const because = "the snapshot holds an ApplicationInstallation"
			return append([]need{
				needs(because, installs(namespace, definition)),
				right("get", "", "secrets", because+", which may take values from it"), right("get", "", "configmaps", because+", which may take values from it"),
				right("get", v1alpha1.Group, applicationInstallationResource, because+", which may depend on others"),
				right("create", v1alpha1.Group, applicationSnapshotResource, because+", which may have snapshots taken before its upgrades"),
				needsExec(namespace, because+", whose snapshots may run hooks"),
			}, needsScale(namespace, because+", whose snapshots may scale workloads to zero")...)
		}
		return []need{needs("the snapshot holds objects that act with rights of Waybill", everything(namespace))}
	}
	return nil
}

func everything(namespace string) authorizationv1.ResourceAttributes {
	return authorizationv1.ResourceAttributes{Verb: "*", Group: "*", Resource: "*", Namespace: namespace}
}
