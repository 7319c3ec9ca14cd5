package apply

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/hold"
	"waybill.dev/waybill/sync/deliver/inventory"
	"waybill.dev/waybill/sync/health"
	"waybill.dev/waybill/sync/manifest"
)

// parallel is the number of requests that one Apply sends at a time.
const parallel = 20

// run is one Apply or Delete at work.
type run struct {
	applier *Applier
	holder  *holder
	request Request
	// delivered has what the inventory of the request names.
	delivered map[manifest.ID]bool

	// unkept has what is pruned although it carries the prune annotation.
	unkept map[manifest.ID]bool

	// held has the holds of the request, and holders finds out what they are worth.
	held    map[manifest.ID]v1alpha1.Hold
	holders *hold.Holders

	// items are the requested objects, in their order. Set by prepare.
	items []*item
	// defined has the CustomResourceDefinitions among the items, by the kind that they define. Set
	// by prepare.
	defined map[kindName]*item
	// intended has what the owner is known to intend. Set by declare.
	intended map[manifest.ID]bool
	// removals are the objects to delete. Set by prune.
	removals []*removal
	// left is what was delivered before and is no longer wanted, but stays without an attempt to
	// delete it. Set by prune.
	left []manifest.ID

	// needed is what has to be watched. What is not in it at the end is no longer watched.
	needed scopes

	// mu guards the rest, which is written from several goroutines.
	mu sync.Mutex
	// err is the failure of the cluster as a whole.
	err error
	// warnings of the kinds that are not watched.
	warnings []manifest.Problem
	// unseen: something that the owner has to know of cannot be watched.
	unseen bool
	// unannounced is Result.Unannounced.
	unannounced bool
	// unchanged is Result.Unchanged. Set by takeOver.
	unchanged bool
	// groups and spaces are what the run waits for: definitions by their group and
	// namespaces by their name. heldBy are those who hold objects.
	groups, spaces map[string]bool
	heldBy         map[types.NamespacedName]bool
}

// kindName is a kind in a group.
type kindName struct{ group, kind string }

// outcome is what became of one object.
type outcome struct {
	// problem is set if it could not be applied or deleted.
	problem *manifest.Problem
	// waiting: it cannot be applied yet, or is not gone yet.
	waiting bool
	// action is what was done to it; empty for nothing.
	action Action
	// again is Change.Again.
	again bool
}

// undone reports whether an object is not what it should be.
func (o outcome) undone() bool { return o.problem != nil || o.waiting }

func (a *Applier) newRun(ctx context.Context, request Request) (*run, error) {
	h, err := a.take(ctx, request.Owner)
	if err != nil {
		return nil, err
	}
	r := &run{
		applier:   a,
		holder:    h,
		request:   request,
		delivered: make(map[manifest.ID]bool, len(request.Inventory)),
		unkept:    make(map[manifest.ID]bool, len(request.Unkept)),
		held:      make(map[manifest.ID]v1alpha1.Hold, len(request.Held)),
		holders:   hold.NewHolders(a.rollbacks.Dynamic()),
		defined:   make(map[kindName]*item),
		needed:    make(scopes),
		groups:    make(map[string]bool),
		spaces:    make(map[string]bool),
		heldBy:    make(map[types.NamespacedName]bool),
	}
	h.moved.Store(false)
	for _, id := range request.Inventory {
		r.delivered[id.Key()] = true
	}
	for _, h := range request.Held {
		r.held[manifest.ID{Group: h.Group, Kind: h.Kind, Namespace: h.Namespace, Name: h.Name}] = h
	}
	for _, id := range request.Unkept {
		r.unkept[id.Key()] = true
	}
	return r, nil
}

// fail records that the cluster as a whole failed. Only the first failure counts: those that follow
// are mostly its consequences.
func (r *run) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
}

// missWatch records that something cannot be watched.
func (r *run) missWatch() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unseen = true
}

func (r *run) failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err != nil
}

// each calls do for each of things, in parallel, until the cluster as a whole fails.
func each[T any](ctx context.Context, r *run, things []T, do func(context.Context, T)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var group errgroup.Group
	group.SetLimit(parallel)
	for _, thing := range things {
		if r.failed() {
			break
		}
		group.Go(func() error {
			if do(ctx, thing); r.failed() {
				cancel()
			}
			return nil
		})
	}
	_ = group.Wait() // do records what goes wrong
}

// wanted returns the identities of everything that was requested.
func (r *run) wanted() []manifest.ID {
	ids := make([]manifest.ID, 0, len(r.items))
	for _, it := range r.items {
		if it.id.Kind != "" && it.id.Name != "" {
			ids = append(ids, it.id)
		}
	}
	return ids
}

// finish returns the result of the run, and releases what is no longer needed.
func (r *run) finish() Result {
	sortProblems(r.warnings)
	result := Result{Err: r.err, Warnings: r.warnings, Unseen: r.unseen, Unannounced: r.unannounced, Unchanged: r.unchanged}
	for _, it := range r.items {
		result.add(it.id, it.outcome)
	}
	left := r.left
	for _, rm := range r.removals {
		result.add(rm.id, rm.outcome)
		if !rm.done {
			left = append(left, rm.id)
		}
	}
	result.Inventory = inventory.Merge(left, r.wanted())
	if r.err == nil {
		r.tidy()
	} else {
		// Not everything was checked. What is gone is noticed next time.
		r.holder.needed = r.needed.with(r.holder.needed)
		result.Inventory = inventory.Merge(r.request.Inventory, r.wanted())
	}
	if result.Held = r.holds(); r.err != nil {
		result.Held = r.request.Held
	}
	r.publish(result)
	if r.request.Health {
		result.Health = r.health()
	}
	return result
}

func sortProblems(list []manifest.Problem) {
	slices.SortFunc(list, func(a, b manifest.Problem) int { return cmp.Compare(a.Error(), b.Error()) })
}

func (r *Result) add(id manifest.ID, o outcome) {
	if o.problem != nil {
		r.Problems = append(r.Problems, *o.problem)
	}
	if o.waiting {
		r.Waiting = append(r.Waiting, id)
	}
	if o.action != "" {
		r.Changes = append(r.Changes, Change{ID: id, Action: o.action, Again: o.again})
	}
}

// publish stores what Observe reports.
func (r *run) publish(result Result) {
	v := &view{
		settled: result.Err == nil && len(result.Problems) == 0 && len(result.Waiting) == 0,
		health:  r.request.Health,
		strays:  slices.Clone(r.holder.strays),
	}
	for _, it := range r.items {
		if it.kind != nil {
			v.objects = append(v.objects, it.key())
		}
	}
	for _, rm := range r.removals {
		if rm.kind != nil && !rm.done {
			v.leaving = append(v.leaving, recordKey{rm.kind, rm.name()})
		}
	}
	if len(v.objects)+len(v.leaving) == 0 {
		v = nil
	}
	r.holder.applied.Store(v)
}

// tidy drops records of objects that are no longer wanted, watches that are not needed, and what
// only the last run waited for.
func (r *run) tidy() {
	wanted := make(map[recordKey]bool, len(r.items))
	for _, it := range r.items {
		if it.kind != nil {
			wanted[it.key()] = true
		}
	}
	for key := range r.holder.records {
		if !wanted[key] {
			r.forget(key)
		}
	}
	r.holder.needed = r.needed
	r.applier.keepOnly(r.holder, r.needed.with(r.holder.watched.Load().scopes()))
	r.applier.definitions.Leave(r.holder, r.groups)
	r.applier.namespaces.leave(r.holder, r.spaces)
	r.applier.holdings.leave(r.holder, r.heldBy)
}

// forget drops the record of an object.
func (r *run) forget(key recordKey) {
	delete(r.holder.records, key)
	key.kind.forget(key.name, r.holder)
}

// health summarizes the health of the requested objects.
func (r *run) health() health.Summary {
	items := make([]health.Item, 0, len(r.items))
	for _, it := range r.items {
		item := health.Item{ID: it.id, Status: health.NotFound, Message: "it could not be applied"}
		if it.kind != nil {
			item, _ = it.kind.observe(it.name(), r.holder)
		}
		items = append(items, item)
	}
	return health.Summarize(items)
}
