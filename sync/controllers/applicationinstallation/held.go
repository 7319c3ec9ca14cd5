package applicationinstallation

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/hold"
	"waybill.dev/waybill/sync/manifest"
)

// heldOneByOne returns which objects of a release are left as they are although the installation is not held:
// those in another namespace than the installation, while an ApplicationRollback or an ApplicationSnapshot of
// that namespace holds them. Users of that namespace may change them anyway; that they hold up the rest of
// the release, or an upgrade, is not theirs to decide. A revision that is newer than the rollback takes its
// objects up again.
func (m *helmMethod) heldOneByOne(p plan) func(context.Context, manifest.ID, *unstructured.Unstructured, time.Time) (bool, error) {
	holders, marked := hold.NewHolders(m.cluster.Dynamic()), m.applier.HeldBy(p.owner)
	return func(ctx context.Context, id manifest.ID, live *unstructured.Unstructured, since time.Time) (bool, error) {
		ref := v1alpha1.ObjectReference{Group: id.Group, Kind: id.Kind, Namespace: id.Namespace, Name: id.Name}
		if ref.Namespace == p.inst.Namespace {
			return false, nil
		}
		candidates := marked // a rollback may have deleted it, to create it again
		if live != nil {
			by, _ := hold.By(live)
			candidates = []types.NamespacedName{by}
		}
		for _, by := range candidates {
			holder, entry, err := holders.Holding(ctx, by, ref)
			if err != nil {
				return false, holdUnknown(err)
			}
			// Times of creation are cut to the second.
			if entry != nil && (holder.AtWork || !since.Truncate(time.Second).After(holder.Created)) {
				return true, nil
			}
		}
		return false, nil
	}
}
