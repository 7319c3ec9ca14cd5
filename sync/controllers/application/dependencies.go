package application

import (
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/health"
)

// checkDependencies records which dependencies exist, and whether the Application
// depends on itself through them.
func (r *Reconciler) checkDependencies(s *scope) {
	s.app.Status.Dependencies = nil
	for _, name := range s.app.Spec.Dependencies {
		d := v1alpha1.ComponentStatus{Group: v1alpha1.Group, Kind: v1alpha1.ApplicationKind, Name: name}
		switch other := r.index.get(types.NamespacedName{Namespace: s.key.Namespace, Name: name}); {
		case other == nil:
			d.Health = string(health.NotFound)
			s.missing = append(s.missing, name)
		case other.deleting:
			d.Installed, d.Health, d.Message = true, string(health.Terminating), "is being deleted"
		default:
			d.Installed, d.Health = true, string(health.Current)
		}
		s.app.Status.Dependencies = append(s.app.Status.Dependencies, d)
	}
	s.cycle = r.owners.Index.Cycle(s.key, s.entry.member.Dependencies)
}
