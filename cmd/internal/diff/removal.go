package diff

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
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
// deleted with them. Of others, what is refused stays.
func keepFoundations(removals []change, others ...change) {
	all := append(slices.Clone(removals), others...)
	for i := range removals {
		c := &removals[i]
		if c.action() != Deleted {
			continue
		}
		of := provided{}.with([]manifest.Object{{Unstructured: c.before}})
		if len(of.namespaces)+len(of.kinds) == 0 {
			continue
		}
		stays := slices.IndexFunc(all, func(other change) bool {
			in := of.namespaces[other.id.Namespace] || of.kinds[other.id.GroupVersionKind().GroupKind()]
			return in && (other.action() == Kept || other.action() == Refused)
		})
		if stays >= 0 {
			c.keep(fmt.Sprintf("has left, and stays for %s, which would be deleted with it", all[stays].id))
		}
	}
}

// hold keeps what may still be wanted, or is still used, as long as something cannot be read or applied,
// as the delivery does.
func (d delivery) hold(applied, removals []change) {
	var stuck []change // as they were
	for _, c := range applied {
		if c.refused && c.before != nil {
			stuck = append(stuck, c)
		}
	}
	for i := range removals {
		if c := &removals[i]; c.action() == Deleted {
			if why := d.held(*c, applied, stuck); why != "" {
				c.keep("has left, and stays: " + why)
			}
		}
	}
	keepFoundations(removals, stuck...)
}

// held says why a removal would not be deleted for now; empty if it would be.
func (d delivery) held(removal change, applied, stuck []change) string {
	for _, p := range d.unread {
		if p.MayBe(removal.id) {
			return fmt.Sprintf("%s, which cannot be read, may describe it", manifest.Object{File: p.File, Line: p.Line}.Place())
		}
	}
	for _, c := range applied {
		if c.waits && c.id.Name == removal.id.Name {
			return fmt.Sprintf("%s, which waits for its kind or namespace, may replace it", c.id)
		}
	}
	for _, c := range stuck {
		if apply.MayUse(c.before, removal.id) {
			return fmt.Sprintf("%s, which would be refused, may still use it", c.id)
		}
	}
	return ""
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
	_, marked := apply.OwnerOf(live)
	switch {
	case d.isForeign(live):
		c.keep("has left, and belongs to another owner by now")
	case !marked:
		c.keep("has left, and does not say any more that it is Waybill's: it is released")
	case apply.Keeps(live):
		c.keep("has left, and its annotation " + v1alpha1.PruneAnnotation + " keeps it")
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
