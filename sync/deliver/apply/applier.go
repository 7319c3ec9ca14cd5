package apply

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"waybill.dev/waybill/sync/cluster/watch"
	"waybill.dev/waybill/sync/health"
)

// Target is one API server under one identity.
type Target interface {
	Mapper() meta.RESTMapper
	Discovery() discovery.CachedDiscoveryInterface
	Metadata() metadata.Interface
	Dynamic() dynamic.Interface
}

// Options configures an Applier.
type Options struct {
	// Notify is called with an owner for which another Apply would do something: an object was
	// edited or deleted, became healthy or stopped being so, or is no longer waited for. It is
	// called from the goroutines of watches and must return at once, for example after putting the
	// owner into a queue. May be nil.
	Notify func(Owner)
	// Status reports whether the objects of an owner are kept with their field status, for
	// Observation.Statuses. Their kinds are then watched in full. It is called from the goroutines
	// of watches, and must always give the same answer for an owner. Nil means that no status is
	// kept.
	Status func(Owner) bool
	// Rollbacks is the same API server under the identity that reads ApplicationRollbacks and
	// ApplicationSnapshots. Default: that of the target.
	Rollbacks Target
	// NotifyStatus is called with an owner for which Status returns true when the status of an
	// object with its mark changes, even of one that could not be applied as it is wanted now.
	// Another Apply would do nothing about that. Like Notify, it must return at once. May be nil.
	NotifyStatus func(Owner)
}

// Applier delivers objects to one API server under one identity, and watches what
// it delivered. It is safe for concurrent use.
type Applier struct {
	// ctx bounds the life of the watches, which outlive the calls that start them.
	ctx    context.Context
	target Target
	// rollbacks is Options.Rollbacks.
	rollbacks Target
	notify    func(Owner)
	// status and notifyStatus are Options.Status and NotifyStatus.
	status       func(Owner) bool
	notifyStatus func(Owner)

	definitions *watch.Definitions[*holder]
	namespaces  *namespaces
	holdings    *holdings

	mu      sync.Mutex
	holders map[Owner]*holder
	kinds   map[schema.GroupVersionKind]*kind
}

// New returns an Applier. Its watches, and with them the calls of Notify, end with ctx; after that,
// Apply returns an error.
func New(ctx context.Context, target Target, options Options) *Applier {
	a := &Applier{
		ctx:          ctx,
		target:       target,
		notify:       options.Notify,
		status:       options.Status,
		notifyStatus: options.NotifyStatus,
		holders:      make(map[Owner]*holder),
		kinds:        make(map[schema.GroupVersionKind]*kind),
	}
	if a.rollbacks = options.Rollbacks; a.rollbacks == nil {
		a.rollbacks = target
	}
	a.definitions = watch.NewDefinitions(ctx, target, a.tell)
	a.namespaces = newNamespaces(a)
	a.holdings = newHoldings(a)
	health.OnChange(ctx, a.lookAnew)
	return a
}

// lookAnew lists the objects again of the kinds whose health is computed in another way now.
func (a *Applier) lookAnew(changed func(schema.GroupKind) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for gvk, k := range a.kinds {
		if changed(gvk.GroupKind()) {
			k.lookAnew()
		}
	}
}

// attach adds a holder to the users of a kind, and creates the kind if it is not known yet. It
// returns nil if the kind is not known and there is no mapping to create it from.
func (a *Applier) attach(h *holder, gvk schema.GroupVersionKind, mapping *meta.RESTMapping) *kind {
	a.mu.Lock()
	defer a.mu.Unlock()
	k := a.kinds[gvk]
	if k == nil {
		if mapping == nil {
			return nil
		}
		k = newKind(a, gvk, mapping)
		a.kinds[gvk] = k
	}
	k.join(h)
	h.kinds[k] = true
	return k
}

// kindOf returns a kind that is in use or that discovery knows, and adds a holder to its users.
func (a *Applier) kindOf(ctx context.Context, h *holder, gvk schema.GroupVersionKind) (*kind, error) {
	if k := a.attach(h, gvk, nil); k != nil {
		return k, nil
	}
	mapping, err := watch.Mapping(ctx, a.target.Mapper(), gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, err
	}
	return a.attach(h, gvk, mapping), nil
}

// keepOnly makes a holder leave all kinds that are not needed, and of the others use only the
// needed namespaces.
func (a *Applier) keepOnly(h *holder, needed scopes) {
	for k := range h.kinds {
		if namespaces, used := needed[k]; used {
			k.use(h, namespaces)
		} else {
			a.leave(h, k)
		}
	}
}

// leave removes a holder from the users of a kind, and drops the kind if it has no other users.
func (a *Applier) leave(h *holder, k *kind) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(h.kinds, k)
	var applied []types.NamespacedName
	for key := range h.records {
		if key.kind == k {
			delete(h.records, key)
			applied = append(applied, key.name)
		}
	}
	if k.leave(h, applied) && a.kinds[k.gvk] == k {
		delete(a.kinds, k.gvk)
	}
}

// discard drops a kind that the API server no longer serves under the name it was known by, so that
// it is looked up again.
func (a *Applier) discard(k *kind) {
	a.mu.Lock()
	if a.kinds[k.gvk] == k {
		delete(a.kinds, k.gvk)
	}
	a.mu.Unlock()
	meta.MaybeResetRESTMapper(a.target.Mapper())
}

// tell notifies each of the concerned holders once.
func (a *Applier) tell(concerned []*holder) {
	if a.notify == nil || a.ctx.Err() != nil {
		return
	}
	for i, h := range concerned {
		if !slices.Contains(concerned[:i], h) {
			a.notify(h.owner)
		}
	}
}

// tellStatus notifies the owners of some marks, if they are known, that the status of an object
// changed.
func (a *Applier) tellStatus(marks ...string) {
	if a.notifyStatus == nil || a.ctx.Err() != nil {
		return
	}
	for _, mark := range marks {
		owner, _ := parseOwner(mark)
		a.mu.Lock()
		_, known := a.holders[owner]
		a.mu.Unlock()
		if known {
			a.notifyStatus(owner)
		}
	}
}
