package applicationinstallation

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/hold"
	"waybill.dev/waybill/sync/manifest"
)

// elsewhere are those objects of a release that are left as they are although the installation is not held:
// those in another namespace than the installation, while an ApplicationRollback or an ApplicationSnapshot of
// that namespace holds them. Users of that namespace may change them anyway; that they hold up the rest of
// the release, or an upgrade, is not theirs to decide. A revision that is newer than the rollback takes its
// objects up again. It is safe for concurrent use.
type elsewhere struct {
	plan    plan
	holders *hold.Holders
	marked  []types.NamespacedName

	mu    sync.Mutex
	found []v1alpha1.Hold
}

func (m *helmMethod) elsewhere(p plan) *elsewhere {
	return &elsewhere{plan: p, holders: hold.NewHolders(m.cluster.Dynamic()), marked: m.applier.HeldBy(p.owner)}
}

// leaves reports whether an object is left as it is; see release.Identity.
func (e *elsewhere) leaves(ctx context.Context, id manifest.ID, live *unstructured.Unstructured, since time.Time) (bool, error) {
	ref := referenceTo(id)
	if ref.Namespace == e.plan.inst.Namespace {
		return false, nil
	}
	candidates := e.marked // a rollback may have deleted it, to create it again
	if live != nil {
		by, _ := hold.By(live)
		candidates = []types.NamespacedName{by}
	}
	for _, by := range candidates {
		holder, entry, err := e.holders.Holding(ctx, by, ref)
		if err != nil {
			return false, holdUnknown(err)
		}
		// Times of creation are cut to the second.
		if entry != nil && (holder.AtWork || !since.Truncate(time.Second).After(holder.Created)) {
			e.note(ref, holder)
			return true, nil
		}
	}
	return false, nil
}

// note keeps that an object is held, since when that is known.
func (e *elsewhere) note(ref v1alpha1.ObjectReference, holder *hold.Holder) {
	held := v1alpha1.Hold{ObjectReference: ref, Rollback: holder.Name, RollbackUID: holder.UID, Since: metav1.Now().Rfc3339Copy(), Wanted: e.revision()}
	for _, prior := range e.plan.held {
		if prior.ObjectReference == ref && prior.RollbackUID == holder.UID {
			held.Since = prior.Since
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.found = append(e.found, held)
}

// revision identifies what is wanted of the objects of the release.
func (e *elsewhere) revision() string {
	if r := e.plan.deployed.known(); r != nil {
		return fmt.Sprintf("revision %d", r.Revision)
	}
	return "unknown revision"
}

// holds returns which objects are held now that some have been compared, all of them if none is named: of others, what
// was known before.
func (e *elsewhere) holds(compared []manifest.ID) []v1alpha1.Hold {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := slices.Clone(e.found)
	if len(compared) == 0 {
		return hold.Sorted(all)
	}
	for _, prior := range e.plan.held {
		if !slices.ContainsFunc(compared, func(id manifest.ID) bool { return referenceTo(id) == prior.ObjectReference }) {
			all = append(all, prior)
		}
	}
	return hold.Sorted(all)
}

func referenceTo(id manifest.ID) v1alpha1.ObjectReference {
	return v1alpha1.ObjectReference{Group: id.Group, Kind: id.Kind, Namespace: id.Namespace, Name: id.Name}
}
