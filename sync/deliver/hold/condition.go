package hold

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/excerpt"
)

// shown is how many objects a message names.
const shown = 5

// Most is how many objects a status lists.
const Most = 500

// Mark sets the condition Held of what delivers objects, or removes it if none of them is held.
func Mark(obj conditions.Setter, holds []v1alpha1.Hold) {
	if message := Message(holds); message != "" {
		conditions.MarkTrue(obj, v1alpha1.HeldCondition, reason(holds), "%s", message)
		return
	}
	conditions.Delete(obj, v1alpha1.HeldCondition)
}

// reason is RolledBack unless only snapshots hold anything.
func reason(holds []v1alpha1.Hold) string {
	for _, h := range holds {
		if _, snapshot := snapshotOf(h.Rollback); h.Holds() && !snapshot {
			return v1alpha1.RolledBackReason
		}
	}
	return v1alpha1.ScaledToZeroReason
}

// Message says which objects are held, by which rollback, and until when; empty if none is.
func Message(holds []v1alpha1.Hold) string {
	said := summary(holds)
	if said == "" {
		return ""
	}
	if reason(holds) == v1alpha1.ScaledToZeroReason {
		return said + ": left scaled to zero until the volumes are cut"
	}
	return said + ": left as the rollback has put them until something else is wanted, or until the rollback is undone, deleted or has spec.hold: false"
}

// Note says, to be appended to a message, which objects are held; empty if none is.
func Note(holds []v1alpha1.Hold) string {
	said := summary(holds)
	if said == "" {
		return ""
	}
	return "; " + said
}

// summary says which rollback holds which objects.
func summary(holds []v1alpha1.Hold) string {
	by := map[string][]string{}
	for _, h := range holds {
		if !h.Holds() {
			continue
		}
		rollback := Describe(types.NamespacedName{Namespace: h.Namespace, Name: h.Rollback})
		if h.Cluster != "" {
			rollback += " in cluster " + h.Cluster
		}
		by[rollback] = append(by[rollback], fmt.Sprintf("%s %s/%s", h.Kind, h.Namespace, h.Name))
	}
	texts := make([]string, 0, len(by))
	for _, rollback := range slices.Sorted(maps.Keys(by)) {
		objects := by[rollback]
		slices.Sort(objects)
		texts = append(texts, fmt.Sprintf("%s holds %s", rollback, excerpt.Texts(objects, ", ", shown)))
	}
	return excerpt.Texts(texts, "; ", shown)
}

// Sorted returns holds in a stable order, and at most as many as a status lists.
func Sorted(holds []v1alpha1.Hold) []v1alpha1.Hold {
	key := func(h v1alpha1.Hold) string {
		return strings.Join([]string{h.Cluster, h.Namespace, h.Kind, h.Group, h.Name}, "/")
	}
	sorted := slices.Clone(holds)
	slices.SortFunc(sorted, func(a, b v1alpha1.Hold) int { return strings.Compare(key(a), key(b)) })
	return sorted[:min(len(sorted), Most)]
}
