package clusters

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/charts"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/render/helm"
	"waybill.dev/waybill/sync/source/chart"
)

// rights are rules for the whole cluster, and those for the system namespace alone.
type rights struct{ whole, here []rbacv1.PolicyRule }

// leastRights are what the hub needs in a user cluster before anything is installed in it: the table in
// api/docs/kubernetescluster.md says what for. The schemas of values are in the system namespace.
func leastRights() rights {
	own := v1alpha1.Group
	return rights{
		whole: []rbacv1.PolicyRule{
			rule("apiextensions.k8s.io", "customresourcedefinitions", "get", "list", "watch", "create", "patch"),
			rule(own, "applicationdefinitions", "get", "list", "watch", "create", "patch", "delete", "copy", "enforce", "install"),
			rule(own, "applicationinstallations", "get", "list", "watch", "create", "update", "patch", "delete"),
			rules(own, []string{"applicationdefinitions/status", "applicationinstallations/status"}, "patch"),
			rule(own, "applications", "get", "list", "watch", "create", "patch", "delete"),
			rules(own, []string{"applicationrollbacks", "applicationsnapshots"}, "get", "list", "watch", "create", "delete"),
			rules(own, []string{"statefulapplications", "applicationsnapshotclasses"}, "list"),
			rule("events.k8s.io", "events", "create", "patch"),
			rule("", "secrets", "get", "list", "watch", "create", "update", "patch", "delete"),
			rule("", "configmaps", "get", "list", "watch"),
			rule("", "namespaces", "get", "create", "patch", "install-into"),
			rule("", "serviceaccounts", "impersonate"),
		},
		here: []rbacv1.PolicyRule{rule("", "configmaps", "create", "patch")},
	}
}

func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rules(group, []string{resource}, verbs...)
}

func rules(group string, resources []string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
}

// inUserCluster are the values with which the chart has all that spec.agent can have it consist of. Hub and driver
// run in no user cluster.
var inUserCluster = map[string]any{
	"roles":     map[string]any{"hub": false, "driver": false, "data": true},
	"sync":      map[string]any{"replicas": 2},
	"webhook":   map[string]any{"podDryRun": true, "remoteDryRun": true},
	"dashboard": map[string]any{"impersonation": map[string]any{"account": true}},
	"userRoles": map[string]any{"sourceSecrets": []any{"any"}},
	"metrics":   map[string]any{"serviceMonitor": map[string]any{"enabled": true}, "prometheusRule": map[string]any{"enabled": true}},
}

// agentRights are what it takes to install, upgrade and remove Waybill's own share of a cluster: objects of the
// kinds that the chart of this program consists of, and changes of those of its names alone. To grant with
// its roles what the hub itself does not have takes escalate and bind, on these roles.
func agentRights(ctx context.Context, namespace string) (*rights, error) {
	loaded, err := ownChart(ctx)
	if err != nil {
		return nil, fmt.Errorf("load the chart of the agent: %w", err)
	}
	var objects []manifest.Object
	for _, perRole := range []bool{false, true} {
		values := helm.MergeValues(inUserCluster, map[string]any{"sync": map[string]any{"perRole": perRole}})
		rendered, err := helm.Render(ctx, loaded.Chart, helm.Options{ReleaseName: charts.ChartName, Namespace: namespace, Values: values})
		if err != nil {
			return nil, fmt.Errorf("render the chart of the agent: %w", err)
		}
		objects = append(objects, rendered.Objects...)
	}
	whole, here := resourceNames{}, resourceNames{}
	for _, o := range objects {
		if o.GetNamespace() == "" {
			whole.add(o)
		} else {
			here.add(o)
		}
	}
	return &rights{whole: whole.rules(), here: here.rules()}, nil
}

// ownChart loads the chart that is part of this program.
func ownChart(ctx context.Context) (c *chart.Chart, err error) {
	dir, err := os.MkdirTemp("", "waybill-")
	if err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	cache, err := chart.NewCache(dir)
	if err != nil {
		return nil, err
	}
	return cache.FromFS(ctx, chart.Tree{
		Open: func(context.Context) (fs.FS, func(), error) { return charts.Chart(), func() {}, nil },
		Path: charts.ChartName,
	}, chart.Credentials{})
}

// resourceNames are the names of objects, by what they are.
type resourceNames map[schema.GroupResource]sets.Set[string]

func (n resourceNames) add(o manifest.Object) {
	plural, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
	of := plural.GroupResource()
	if n[of] == nil {
		n[of] = sets.New[string]()
	}
	n[of].Insert(o.GetName())
}

// rules lets objects be created, listed and watched, which RBAC cannot limit to names, and those of the names be
// read, changed and deleted.
func (n resourceNames) rules() []rbacv1.PolicyRule {
	ordered := slices.SortedFunc(maps.Keys(n), func(a, b schema.GroupResource) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	})
	var all []rbacv1.PolicyRule
	for _, of := range ordered {
		named := rule(of.Group, of.Resource, "get", "patch", "delete")
		if of.Group == rbacv1.GroupName && (of.Resource == "roles" || of.Resource == "clusterroles") {
			named.Verbs = append(named.Verbs, "escalate", "bind")
		}
		named.ResourceNames = sets.List(n[of])
		all = append(all, rule(of.Group, of.Resource, "create", "list", "watch"), named)
	}
	return all
}
