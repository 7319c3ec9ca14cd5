package tree

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/hold"
	"waybill.dev/waybill/sync/manifest"
)

// hold records which of the objects that one of ours delivers to a cluster an ApplicationRollback holds.
// Its status says so; the annotation of an object may be from any client.
func (b *builder) hold(at *clusterReader, holds []v1alpha1.Hold) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, h := range holds {
		if h.Holds() {
			id := manifest.ID{Group: h.Group, Kind: h.Kind, Namespace: h.Namespace, Name: h.Name}
			b.holds[visit{cluster: at, id: id}] = held(h.Namespace, h.Rollback, h.Since)
		}
	}
}

// held says by which ApplicationRollback or ApplicationSnapshot something is held, and since when.
func held(namespace, rollback string, since metav1.Time) string {
	by := hold.Describe(types.NamespacedName{Namespace: namespace, Name: rollback})
	return fmt.Sprintf("held by %s since %s", by, since.UTC().Format(time.RFC3339))
}

// markHeld has the nodes of held objects say so.
func (b *builder) markHeld(node *treeNode) {
	id := manifest.ID{Group: node.Group, Kind: node.Kind, Namespace: node.Namespace, Name: node.Name}
	if why := b.holds[visit{cluster: node.at, id: id}]; why != "" {
		node.Message = joined(why, node.Message)
	}
	for _, child := range node.Children {
		b.markHeld(child)
	}
}

// holdInstallation records what of an installation is held: single objects, or all of its release.
func (b *builder) holdInstallation(at *clusterReader, inst *v1alpha1.ApplicationInstallation) {
	b.hold(at, inst.Status.Held)
	if h := inst.Status.ReleaseHold; h.Holds() {
		b.hold(at, []v1alpha1.Hold{{
			ObjectReference: v1alpha1.ObjectReference{
				Group: v1alpha1.Group, Kind: v1alpha1.ApplicationInstallationKind, Namespace: inst.Namespace, Name: inst.Name,
			},
			Rollback: h.Rollback, Since: h.Since, Wanted: h.Wanted,
		}})
	}
}
