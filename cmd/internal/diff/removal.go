package diff

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/manifest"
)

// predictRemovals returns what would happen to objects that are gone from the source, without those of
// other owners.
func (d delivery) predictRemovals(ctx context.Context, ids []manifest.ID) ([]change, error) {
	var removals []change
	for _, id := range ids {
		removal, err := d.predictRemoval(ctx, id)
		if err != nil {
			return nil, err
		}
		if removal != nil {
			removals = append(removals, *removal)
		}
	}
	keepFoundations(removals)
	return slices.DeleteFunc(removals, func(c change) bool { return d.isForeign(c.before) }), nil
}

// keepFoundations keeps the Namespaces and the CustomResourceDefinitions of what stays, which would be
// deleted with them.
func keepFoundations(removals []change) {
	for i := range removals {
		c := &removals[i]
		if c.action() != Deleted {
			continue
		}
		of := provided{}.with([]manifest.Object{{Unstructured: c.before}})
		if len(of.namespaces)+len(of.kinds) == 0 {
			continue
		}
		stays := slices.IndexFunc(removals, func(other change) bool {
			in := of.namespaces[other.id.Namespace] || of.kinds[other.id.GroupVersionKind().GroupKind()]
			return in && (other.action() == Kept || other.action() == Refused)
		})
		if stays >= 0 {
			c.keep(fmt.Sprintf("has left, and stays for %s, which would be deleted with it", removals[stays].id))
		}
	}
}

// hold keeps what the delivery would leave as it is for now, as long as something cannot be read or applied.
func (d delivery) hold(applied, removals []change) {
	why := d.preview().HeldBack(attempts(removals), attempts(applied))
	for i := range removals {
		if c := &removals[i]; c.action() == Deleted && why[c.id] != "" {
			c.keep("has left, and stays: " + why[c.id])
		}
	}
}

func attempts(changes []change) []apply.Attempt {
	all := make([]apply.Attempt, len(changes))
	for i, c := range changes {
		all[i] = apply.Attempt{ID: c.id, Live: c.before, Refused: c.refused, Waits: c.waits}
	}
	return all
}

// holdIfRefused keeps what a release would delete if something that is applied before is refused: Helm
// does not get that far.
func holdIfRefused(applied, removals []change) {
	if !slices.ContainsFunc(applied, func(c change) bool { return c.refused }) {
		return
	}
	for i := range removals {
		if removals[i].action() == Deleted {
			removals[i].keep("has left; nothing is deleted until everything else is applied")
		}
	}
}

// predictRemoval returns what would happen to an object that is gone from the source; nil if
// nothing would, because it does not exist any more. One of another owner is kept.
func (d delivery) predictRemoval(ctx context.Context, id manifest.ID) (*change, error) {
	api, err := d.cluster.Client()
	if err != nil {
		return nil, err
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(id.GroupVersionKind())
	err = api.Get(ctx, client.ObjectKey{Namespace: id.Namespace, Name: id.Name}, live)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	if apierrors.IsForbidden(err) && d.acting {
		return &change{cluster: d.cluster.Name(), id: id, note: err.Error(), refused: true}, nil
	}
	if apierrors.IsForbidden(err) && d.standIn {
		return &change{cluster: d.cluster.Name(), id: id, omitted: err}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", id, d.cluster.Explain(err))
	}
	c := &change{cluster: d.cluster.Name(), id: id, before: live}
	if why := d.preview().Released(live); why != "" {
		c.keep("has left, and " + why)
	}
	return c, nil
}

// isForeign reports whether a live object says that it belongs to another owner.
func (d delivery) isForeign(live *unstructured.Unstructured) bool {
	if live == nil {
		return false
	}
	_, marked := apply.OwnerOf(live)
	return marked && !d.owns(live)
}
