package applicationdefinition

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
)

// maxUsers is the limit of the API on the installations listed for one version.
const maxUsers = 20

// rollUp sets the installations that use each version, from the status of each cluster. That of a
// lost or paused cluster is from when it was last seen.
func (r *Reconciler) rollUp(_ context.Context, s *scope) error {
	s.definition.Status.UsedBy = usage(s.definition, s.clusters)
	s.definition.Status.Unprovided = unprovided(s.definition, s.clusters)
	return nil
}

// maxUnprovided is the limit of the API on the clusters listed that lack what they are given.
const maxUnprovided = 20

// unprovided returns the clusters without the installation that default or enforced asks for, sorted.
func unprovided(definition *v1alpha1.ApplicationDefinition, clusters []v1alpha1.KubernetesCluster) []v1alpha1.UnprovidedCluster {
	var all []v1alpha1.UnprovidedCluster
	for i := range clusters {
		for _, p := range clusters[i].Status.Provided {
			if p.Name == definition.Name && p.UID == definition.UID && p.Problem != "" {
				all = append(all, v1alpha1.UnprovidedCluster{Cluster: client.ObjectKeyFromObject(&clusters[i]).String(), Problem: p.Problem})
			}
		}
	}
	slices.SortFunc(all, func(a, b v1alpha1.UnprovidedCluster) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return all[:min(len(all), maxUnprovided)]
}

// provisionChanged returns the definitions whose problems differ between two states of one cluster.
func provisionChanged(before, after []v1alpha1.ProvidedDefinition) []string {
	problems := map[string]string{}
	for _, p := range before {
		problems[p.Name] = p.Problem
	}
	var names []string
	for _, p := range after {
		if problems[p.Name] != p.Problem {
			names = append(names, p.Name)
		}
		delete(problems, p.Name)
	}
	for name, problem := range problems {
		if problem != "" {
			names = append(names, name)
		}
	}
	return names
}

// usage returns the installations that use a definition, sorted by version. Those of a cluster that
// it was never offered to do not count: they install nothing, and could hold it for ever. It does not
// change the clusters.
func usage(definition *v1alpha1.ApplicationDefinition, clusters []v1alpha1.KubernetesCluster) []v1alpha1.VersionUsage {
	selector, err := validation.OfferSelector(definition)
	users := map[string][]string{}
	for i := range clusters {
		kc := &clusters[i]
		// One whose clusterSelector is invalid may have been offered to any cluster.
		if err == nil && !selector.Matches(labels.Set(kc.Labels)) && !kc.HasBegun(definition, kc.Status.UID) {
			continue
		}
		prefix := client.ObjectKeyFromObject(kc).String() + "/"
		for _, inst := range kc.Status.Installations {
			if inst.Definition == definition.Name {
				version := versionName(definition, inst.Version)
				users[version] = append(users[version], prefix+inst.Namespace+"/"+inst.Name)
			}
		}
	}
	var used []v1alpha1.VersionUsage
	for version, names := range users {
		slices.Sort(names)
		used = append(used, v1alpha1.VersionUsage{
			Version: version, Count: int32(len(names)), Installations: names[:min(len(names), maxUsers)],
		})
	}
	slices.SortFunc(used, func(a, b v1alpha1.VersionUsage) int { return cmp.Compare(a.Version, b.Version) })
	return used
}

// versionName returns how the definition calls a version that an installation asks for.
func versionName(definition *v1alpha1.ApplicationDefinition, version string) string {
	if v := definition.GetVersion(version); v != nil {
		return v.Version
	}
	return version
}

// reused returns the definitions whose use differs between two states of one cluster. The readiness
// of installations does not count.
func reused(before, after []v1alpha1.InstallationSummary) []string {
	type use struct{ definition, version, namespace, name string }
	count := map[use]int{}
	for _, i := range before {
		count[use{i.Definition, i.Version, i.Namespace, i.Name}]--
	}
	for _, i := range after {
		count[use{i.Definition, i.Version, i.Namespace, i.Name}]++
	}
	changed := map[string]bool{}
	for u, n := range count {
		if n != 0 {
			changed[u.definition] = true
		}
	}
	names := make([]string, 0, len(changed))
	for name := range changed {
		names = append(names, name)
	}
	return names
}
