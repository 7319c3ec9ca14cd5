package apply

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"waybill.dev/waybill/sync/deliver/inventory"
	"waybill.dev/waybill/sync/manifest"
)

// crdKind is the kind of CustomResourceDefinitions.
var crdKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// prepare turns manifests into items.
func (r *run) prepare() {
	r.request.Progress.begin(len(r.request.Objects))
	for _, object := range r.request.Objects {
		it, err := newItem(object, r.request)
		r.items = append(r.items, it)
		if err != nil {
			it.refuse(ReasonInvalid, "cannot be applied: "+err.Error())
			continue
		}
		if it.id.Kind == crdKind.Kind && it.id.Group == crdKind.Group {
			r.defined[it.defines()] = it
		}
	}
}

// refuse records why an item cannot be applied.
func (it *item) refuse(reason, message string) {
	it.problem = &manifest.Problem{
		ID:      it.shown(),
		File:    it.manifest.File,
		Line:    it.manifest.Line,
		Reason:  reason,
		Message: message,
	}
}

// deliver applies the items, starting with those that others depend on.
func (r *run) deliver(ctx context.Context) {
	r.resolveKnown(ctx, usable(r.items))
	for _, stage := range stages(usable(r.items)) {
		if !r.failed() {
			r.stage(ctx, stage)
		}
	}
}

// stage applies items that do not depend on one another.
func (r *run) stage(ctx context.Context, items []*item) {
	r.resolve(ctx, items)
	if r.failed() {
		return
	}
	r.refuseDuplicates(usable(items))
	r.cover(ctx, usable(items))
	good := usable(items)
	items = r.outdated(good)
	r.request.Progress.add(len(good) - len(items))
	if len(items) == 0 || r.failed() || !r.declare(ctx, items) {
		return
	}
	r.lookUpMany(ctx, items)
	each(ctx, r, items, func(ctx context.Context, it *item) {
		if r.write(ctx, it); it.applied != nil {
			r.request.Progress.add(1)
		}
	})
	for _, it := range items {
		if it.applied != nil {
			r.holder.records[it.key()] = it.applied
		}
	}
}

// usable returns the items that have no problem and wait for nothing so far.
func usable(items []*item) []*item {
	var good []*item
	for _, it := range items {
		if !it.undone() {
			good = append(good, it)
		}
	}
	return good
}

// refuseDuplicates refuses objects that are described more than once. They may have looked
// different until a namespace was filled in. None of them is applied, because it is unknown which
// one is meant.
func (r *run) refuseDuplicates(items []*item) {
	seen := make(map[manifest.ID][]*item, len(items))
	for _, it := range items {
		seen[it.id.Key()] = append(seen[it.id.Key()], it)
	}
	for _, same := range seen {
		if len(same) == 1 {
			continue
		}
		for i, it := range same {
			other := same[(i+1)%len(same)].manifest
			if other.File == "" {
				other.File = "the same source"
			}
			it.refuse(manifest.ReasonDuplicateObject, fmt.Sprintf("described more than once: %s; none of them is applied", it.manifest.Also(other)))
		}
	}
}

// outdated returns the items that need a write.
func (r *run) outdated(items []*item) []*item {
	var needed []*item
	for _, it := range items {
		it.sight = it.kind.see(it.name(), r.holder)
		if !it.sight.upToDate(it) {
			needed = append(needed, it)
		}
	}
	return needed
}

// declare stores what the run is about to create, unless that is known already. It returns false if
// that fails.
func (r *run) declare(ctx context.Context, items []*item) bool {
	if r.request.Intent == nil {
		return true
	}
	if r.intended == nil {
		r.intended = make(map[manifest.ID]bool)
	}
	known := true
	for _, it := range items {
		known = known && (r.delivered[it.id.Key()] || r.intended[it.id.Key()])
	}
	if known {
		return true
	}
	ids := r.wanted()
	if err := r.request.Intent(ctx, inventory.Merge(r.request.Inventory, ids)); err != nil {
		r.fail(fmt.Errorf("store what is about to be applied: %w", err))
		return false
	}
	for _, id := range ids {
		r.intended[id.Key()] = true
	}
	return true
}
