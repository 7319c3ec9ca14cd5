package applicationdefinition

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
)

// What is listed of the use of a definition, since clusters say what is used there.
const (
	// maxUsers is the limit of the API on the installations listed for one version.
	maxUsers = 20
	// maxUsersSize bounds the names of all installations that are listed.
	maxUsersSize = 256 << 10
	// maxUnknown is how many versions are listed that the definition does not offer.
	maxUnknown = 50
)

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
	found := uses{}
	for i := range clusters {
		kc := &clusters[i]
		if kc.IsSeed() {
			found.addSeed(definition, kc)
			continue
		}
		// One whose clusterSelector is invalid may have been offered to any cluster.
		if err == nil && !selector.Matches(labels.Set(kc.Labels)) && !kc.HasBegun(definition, kc.Status.UID) {
			continue
		}
		prefix := client.ObjectKeyFromObject(kc).String() + "/"
		for _, inst := range kc.Status.Installations {
			if inst.Definition == definition.Name {
				found.add(versionName(definition, inst.Version), 1, prefix+inst.Namespace+"/"+inst.Name)
			}
		}
	}
	return found.sorted(definition)
}

// uses are the installations that use each version of a definition.
type uses map[string]*v1alpha1.VersionUsage

// add adds a number of installations, some of them by name.
func (u uses) add(version string, count int32, names ...string) {
	used := u[version]
	if used == nil {
		used = &v1alpha1.VersionUsage{Version: version}
		u[version] = used
	}
	used.Count = min(used.Count, math.MaxInt32-count) + count
	used.Installations = append(used.Installations, names...)
}

// addSeed adds the installations in the clusters of a seed, which gets every definition.
func (u uses) addSeed(definition *v1alpha1.ApplicationDefinition, seed *v1alpha1.KubernetesCluster) {
	prefix := client.ObjectKeyFromObject(seed).String() + "/"
	for _, use := range seed.Status.Usage {
		if use.Definition != definition.Name {
			continue
		}
		names := make([]string, 0, len(use.Installations))
		for _, name := range use.Installations {
			names = append(names, prefix+name)
		}
		u.add(versionName(definition, use.Version), use.Count, names...)
	}
}

// sorted returns the use of each version, with as many installations by name, and as many versions that the
// definition does not offer, as are listed.
func (u uses) sorted(definition *v1alpha1.ApplicationDefinition) []v1alpha1.VersionUsage {
	var used []v1alpha1.VersionUsage
	unknown, size := 0, 0
	for _, version := range slices.Sorted(maps.Keys(u)) {
		if definition.GetVersion(version) == nil {
			if unknown++; unknown > maxUnknown {
				continue
			}
		}
		one := *u[version]
		slices.Sort(one.Installations)
		one.Installations = one.Installations[:min(len(one.Installations), maxUsers)]
		for n, name := range one.Installations {
			if size += len(name); size > maxUsersSize {
				one.Installations = one.Installations[:n]
				break
			}
		}
		used = append(used, one)
	}
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
func reused(before, after *v1alpha1.KubernetesClusterStatus) []string {
	type use struct {
		definition, version, namespace, name string
		count                                int32
	}
	balance := map[use]int{}
	count := func(status *v1alpha1.KubernetesClusterStatus, by int) {
		for _, i := range status.Installations {
			balance[use{i.Definition, i.Version, i.Namespace, i.Name, 1}] += by
		}
		for _, u := range status.Usage {
			balance[use{u.Definition, u.Version, "", strings.Join(u.Installations, " "), u.Count}] += by
		}
	}
	count(before, -1)
	count(after, 1)
	changed := map[string]bool{}
	for u, n := range balance {
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
