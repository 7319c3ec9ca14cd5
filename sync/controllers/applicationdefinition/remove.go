package applicationdefinition

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
	"waybill.dev/waybill/sync/reconcile"
)

// remove holds a definition that is being deleted for as long as it is in use. With
// force-remove, it waits for the installations to be uninstalled, which need the definition to see
// that they are removed by force. Its copies stay until it is gone.
func (r *Reconciler) remove(_ context.Context, s *scope) error {
	if s.definition.DeletionTimestamp.IsZero() {
		return nil
	}
	if len(s.definition.Status.UsedBy) == 0 {
		s.outcome = &reconcile.Outcome{Released: true}
		return nil
	}
	names, count := users(s.definition.Status.UsedBy)
	hint := away(s.definition.Status.UsedBy, s.clusters)
	if forced(s.definition) {
		return reconcile.Waiting(v1alpha1.DeletingReason, 0, "waiting for %s to be uninstalled: %s%s",
			installations(count), names, hint)
	}
	return reconcile.Waiting(v1alpha1.InUseReason, 0,
		"used by %s: %s%s; delete them, or annotate the definition with %s: \"*\" to have them uninstalled",
		installations(count), names, hint, v1alpha1.ForceRemoveAnnotation)
}

// forced reports whether every version in use may be removed by force.
func forced(definition *v1alpha1.ApplicationDefinition) bool {
	return !slices.ContainsFunc(definition.Status.UsedBy, func(used v1alpha1.VersionUsage) bool {
		return !validation.ForceRemoved(definition, used.Version)
	})
}

func installations(count int) string {
	if count == 1 {
		return "1 installation"
	}
	return fmt.Sprintf("%d installations", count)
}

// users returns the names of at most five installations, and the number of all.
func users(used []v1alpha1.VersionUsage) (names string, count int) {
	var listed []string
	for _, u := range used {
		listed = append(listed, u.Installations...)
		count += int(u.Count)
	}
	if count <= shown {
		return strings.Join(listed, ", "), count
	}
	listed = listed[:min(shown, len(listed))]
	return fmt.Sprintf("%s and %d more", strings.Join(listed, ", "), count-len(listed)), count
}

// away returns a hint if a cluster that uses the definition is lost or paused: its installations are only
// known from when it was last seen.
func away(used []v1alpha1.VersionUsage, clusters []v1alpha1.KubernetesCluster) string {
	for i := range clusters {
		kc := &clusters[i]
		key := client.ObjectKeyFromObject(kc).String()
		switch {
		case kc.Status.Reachable || !usedIn(used, key):
		case kc.Spec.Paused:
			return fmt.Sprintf(" (cluster %s is paused: this is its last known state)", key)
		default:
			return fmt.Sprintf(" (cluster %s is not reachable: if it is lost for good, delete its KubernetesCluster)", key)
		}
	}
	return ""
}

// usedIn reports whether an installation in a cluster is among those that are listed.
func usedIn(used []v1alpha1.VersionUsage, cluster string) bool {
	return slices.ContainsFunc(used, func(u v1alpha1.VersionUsage) bool {
		return slices.ContainsFunc(u.Installations, func(name string) bool { return strings.HasPrefix(name, cluster+"/") })
	})
}

// release removes the finalizer. The copies are deleted when the definition is gone.
func (r *Reconciler) release(ctx context.Context, definition *v1alpha1.ApplicationDefinition) error {
	if err := reconcile.RemoveFinalizer(ctx, r.Client, definition); err != nil {
		return err
	}
	r.kernel.Forget(definition.UID)
	return nil
}
