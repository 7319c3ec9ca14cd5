package dashboard

import (
	"context"
	"slices"

	"waybill.dev/waybill/api/v1alpha1"
)

// States that lists are narrowed down to.
const (
	stateFailing = "failing"
	// stateBehind: installed in another version than the default one of the definition.
	stateBehind = "behind"
)

// offers are the definitions that a viewer may see, by name.
type offers map[string]*v1alpha1.ApplicationDefinition

// offers returns the definitions that the viewer may see.
func (s *server) offers(ctx context.Context, v *viewer) offers {
	known := offers{}
	for _, d := range visible[*v1alpha1.ApplicationDefinition](ctx, v, s.inventory.definitions) {
		known[d.Name] = d
	}
	return known
}

// other returns the default version of a definition if a version is another one; empty if it is the same, or if there is none.
func (o offers) other(definition, version string) string {
	d := o[definition]
	if d == nil || d.Spec.DefaultVersion == "" || version == "" || v1alpha1.SameVersion(version, d.Spec.DefaultVersion) {
		return ""
	}
	return d.Spec.DefaultVersion
}

// has reports whether a version is one that a definition offers, as far as that is known: a user cluster may report any.
func (o offers) has(definition, version string) bool {
	d := o[definition]
	return d == nil || d.GetVersion(version) != nil
}

// behind reports whether something is installed in a cluster that is not in its default version.
func (o offers) behind(k *v1alpha1.KubernetesCluster) bool {
	return slices.ContainsFunc(k.Status.Installations, func(i v1alpha1.InstallationSummary) bool { return o.other(i.Definition, i.Version) != "" })
}

// behind returns how many installations of a definition are not in its default version.
func behind(d *v1alpha1.ApplicationDefinition) int32 {
	offered, count := offers{d.Name: d}, int32(0)
	for _, use := range d.Status.UsedBy {
		if offered.other(d.Name, use.Version) != "" {
			count += use.Count
		}
	}
	return count
}
