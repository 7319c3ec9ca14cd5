// Package hold is what controllers that deliver objects know of rollbacks and snapshots: an object that an
// ApplicationRollback holds is left as it is, until what is wanted for it changes or the hold is
// released; what an ApplicationSnapshot has scaled to zero, until it has its replicas back.
package hold

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// snapshotPrefix is on the names of ApplicationSnapshots among those who hold objects. No name of an object has
// it.
const snapshotPrefix = "snapshot:"

// BySnapshot is the name of an ApplicationSnapshot as one who holds objects.
func BySnapshot(name string) string { return snapshotPrefix + name }

// snapshotOf returns the name of the ApplicationSnapshot that is meant; false if it is an ApplicationRollback.
func snapshotOf(name string) (string, bool) { return strings.CutPrefix(name, snapshotPrefix) }

// Describe names the holder of an object, for a message.
func Describe(by types.NamespacedName) string {
	if name, ok := snapshotOf(by.Name); ok {
		return v1alpha1.ApplicationSnapshotKind + " " + by.Namespace + "/" + name
	}
	return v1alpha1.ApplicationRollbackKind + " " + by.String()
}

// By returns the ApplicationRollback, or the ApplicationSnapshot, that an object says it is held by. Any
// user who may edit the object can write that, so Holding decides.
func By(obj client.Object) (types.NamespacedName, bool) {
	by := Parse(obj.GetAnnotations()[v1alpha1.HeldByAnnotation])
	return by, by.Name != ""
}

// Parse reads the value of the annotation HeldByAnnotation; the zero value if it names nothing.
func Parse(value string) types.NamespacedName {
	namespace, name, ok := strings.Cut(value, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// Holds returns the entry of an object in the status of an ApplicationRollback that holds it; nil if it
// does not. A rollback holds objects of its own namespace only; one that is deleted in the middle, until
// they are as before.
func Holds(r *v1alpha1.ApplicationRollback, ref v1alpha1.ObjectReference) *v1alpha1.HeldObject {
	i := slices.IndexFunc(r.Status.Held, func(h v1alpha1.HeldObject) bool { return h.ObjectReference == ref })
	if i < 0 || !r.DeletionTimestamp.IsZero() && !UnderWay(r) || ref.Namespace != r.Namespace {
		return nil
	}
	return &r.Status.Held[i]
}

// Taking reports whether the application of a snapshot may be at rest for it, or is about to be: it is in the status of
// a snapshot that it begins before it looks whether a rollback is under way, and the other way round.
func Taking(s *v1alpha1.ApplicationSnapshot) bool {
	switch s.Status.Phase {
	case v1alpha1.SnapshotCapturing, v1alpha1.SnapshotQuiescing, v1alpha1.SnapshotCutting, v1alpha1.SnapshotReleasing:
		return true
	default:
		return false
	}
}

// Changes reports whether a rollback may have changed its application, or be about to: while it waits for snapshots, it
// has not.
func Changes(r *v1alpha1.ApplicationRollback) bool {
	return UnderWay(r) && (r.Status.Phase != v1alpha1.RollbackHolding || len(r.Status.Held) > 0)
}

// UnderWay reports whether a rollback is at work on what it holds: then nothing that is wanted
// elsewhere is worth interrupting it.
func UnderWay(r *v1alpha1.ApplicationRollback) bool {
	switch r.Status.Phase {
	case v1alpha1.RollbackHolding, v1alpha1.RollbackScalingDown, v1alpha1.RollbackRestoring, v1alpha1.RollbackSwapping,
		v1alpha1.RollbackApplying, v1alpha1.RollbackScalingUp, v1alpha1.RollbackChecking, v1alpha1.RollbackReverting:
		return true
	default:
		return false
	}
}
