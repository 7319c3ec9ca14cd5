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

// defaults are the default versions of definitions, by name.
type defaults map[string]string

// defaults returns those of the definitions that the viewer may see.
func (s *server) defaults(ctx context.Context, v *viewer) defaults {
	known := defaults{}
	for _, d := range visible[*v1alpha1.ApplicationDefinition](ctx, v, s.inventory.definitions) {
		if d.Spec.DefaultVersion != "" {
			known[d.Name] = d.Spec.DefaultVersion
		}
	}
	return known
}

// other returns the default version of a definition if a version is another one; empty if it is the same, or if there is none.
func (d defaults) other(definition, version string) string {
	offered := d[definition]
	if offered == "" || version == "" || v1alpha1.SameVersion(version, offered) {
		return ""
	}
	return offered
}

// behind reports whether something is installed in a cluster that is not in its default version.
func (d defaults) behind(k *v1alpha1.KubernetesCluster) bool {
	return slices.ContainsFunc(k.Status.Installations, func(i v1alpha1.InstallationSummary) bool { return d.other(i.Definition, i.Version) != "" })
}

// behind returns how many installations of a definition are not in its default version.
func behind(d *v1alpha1.ApplicationDefinition) int32 {
	offered, count := defaults{d.Name: d.Spec.DefaultVersion}, int32(0)
	for _, use := range d.Status.UsedBy {
		if offered.other(d.Name, use.Version) != "" {
			count += use.Count
		}
	}
	return count
}
