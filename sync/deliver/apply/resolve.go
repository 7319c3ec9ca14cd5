package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"waybill.dev/waybill/sync/cluster/watch"
	"waybill.dev/waybill/sync/health"
	"waybill.dev/waybill/sync/manifest"
)

// Namespaced reports whether the objects of a kind have namespaces, without applying any. For a
// kind that is not known, or not known yet, known is false.
func (a *Applier) Namespaced(ctx context.Context, gvk schema.GroupVersionKind) (namespaced, known bool, err error) {
	ctx, cancel := a.bind(ctx)
	defer cancel()
	a.mu.Lock()
	k := a.kinds[gvk]
	a.mu.Unlock()
	if k != nil {
		return k.namespaced, true, nil
	}
	mapping, err := watch.Mapping(ctx, a.target.Mapper(), gvk.GroupKind(), gvk.Version)
	switch {
	case err == nil:
		return isNamespaced(mapping), true, nil
	case meta.IsNoMatchError(err):
		return false, false, nil
	default:
		return false, false, watch.Stable(err)
	}
}

// lookup is the result of looking up a kind.
type lookup struct {
	kind *kind
	err  error
}

// resolveKnown looks up the kinds of the items that discovery knows. Kinds that it does not know
// may be defined by the first stage.
func (r *run) resolveKnown(ctx context.Context, items []*item) {
	found := make(map[schema.GroupVersionKind]lookup)
	for _, it := range items {
		if r.failed() {
			return
		}
		gvk := it.id.GroupVersionKind()
		answer, asked := found[gvk]
		if !asked {
			answer.kind, answer.err = r.applier.kindOf(ctx, r.holder, gvk)
			found[gvk] = answer
		}
		switch {
		case answer.err == nil:
			r.place(it, answer.kind)
		case !meta.IsNoMatchError(answer.err):
			r.unresolved(it, answer.err)
		}
	}
}

// resolve looks up the kinds of the items that discovery does not know.
func (r *run) resolve(ctx context.Context, items []*item) {
	found := make(map[schema.GroupVersionKind]lookup)
	for _, it := range items {
		if it.kind != nil || it.undone() || r.failed() {
			continue
		}
		gvk := it.id.GroupVersionKind()
		answer, asked := found[gvk]
		if !asked {
			answer.kind, answer.err = r.definedKind(ctx, gvk)
			found[gvk] = answer
		}
		if answer.err != nil {
			r.unresolved(it, answer.err)
			continue
		}
		r.place(it, answer.kind)
	}
}

// definedKind returns a kind that discovery does not know yet.
func (r *run) definedKind(ctx context.Context, gvk schema.GroupVersionKind) (*kind, error) {
	if k, err := r.applier.kindOf(ctx, r.holder, gvk); err == nil || !meta.IsNoMatchError(err) {
		return k, err
	}
	r.groups[gvk.Group] = true
	mapping, err := r.applier.definitions.Find(ctx, r.holder, gvk)
	if err != nil {
		return nil, err
	}
	return r.applier.attach(r.holder, gvk, mapping), nil
}

// place gives an item its kind and namespace.
func (r *run) place(it *item, k *kind) {
	it.place(k)
	if err := it.identify(); err != nil {
		it.refuse(ReasonInvalid, "cannot be applied: "+err.Error())
		return
	}
	if r.request.Ignored != nil {
		it.ignored = r.request.Ignored.Of(&unstructured.Unstructured{Object: it.body}, it.id.Namespace)
	}
	if r.request.Health && health.HasStatus(k.gvk.GroupKind()) || r.applier.wantsStatus(r.request.Owner, k) {
		k.watchFully()
	}
}

// unresolved records that the kind of an item could not be found.
func (r *run) unresolved(it *item, err error) {
	var (
		missing watch.NoDefinitionError
		pending watch.NotEstablishedError
		hidden  watch.HiddenError
	)
	switch {
	case errors.As(err, &missing):
		r.awaitKind(it, err.Error())
	case errors.As(err, &pending) && pending.Refusal == "":
		it.waiting = true
	case errors.As(err, &pending):
		it.waiting = true
		it.refuse(ReasonKindNotFound, err.Error())
	case errors.As(err, &hidden):
		missing := watch.NoDefinitionError{Kind: it.id.GroupVersionKind()}
		it.refuse(ReasonKindNotFound, fmt.Sprintf("%s; cannot watch for it: %s", missing.Error(), rootCause(err)))
	case discovery.IsGroupDiscoveryFailedError(err):
		it.refuse(ReasonUnavailable, err.Error())
	case apierrors.IsForbidden(err): // discovery itself, which every authenticated user may use
		r.fail(fmt.Errorf("the API server forbids even discovery, as where the right to impersonate is missing: %w", err))
	default:
		if failure := clusterFailure(err); failure != nil {
			r.fail(failure)
			return
		}
		it.refuse(classify(err))
	}
}

// awaitKind records that an item waits for its kind to be served. That is no problem if the
// definition of the kind has just been applied.
func (r *run) awaitKind(it *item, message string) {
	it.waiting = true
	if definition := r.defined[kindName{it.id.Group, it.id.Kind}]; definition == nil || definition.undone() {
		it.refuse(ReasonKindNotFound, message)
		if !r.applier.definitions.Defines(it.id.Group) {
			r.mu.Lock()
			r.unannounced = true
			r.mu.Unlock()
		}
	}
}

// cover makes sure that the objects are watched before anything is done to them.
func (r *run) cover(ctx context.Context, items []*item) {
	byKind := make(map[*kind][]*item)
	for _, it := range items {
		byKind[it.kind] = append(byKind[it.kind], it)
		r.needed.add(it.kind, it.id.Namespace)
	}
	each(ctx, r, slices.Collect(maps.Keys(byKind)), func(ctx context.Context, k *kind) {
		namespaces := slices.Sorted(maps.Keys(r.needed[k]))
		if err := k.cover(ctx, namespaces); err != nil {
			r.uncovered(k, byKind[k], err)
			return
		}
		r.warn(k.unwatched(r.holder, namespaces))
	})
}

// uncovered records that the state of the objects of a kind is not known. They are not touched; the
// owner is notified when their state is known.
func (r *run) uncovered(k *kind, items []*item, err error) {
	if failure := r.failureOf(k, err); failure != nil {
		r.fail(failure)
		return
	}
	r.awaitServed(k)
	for _, it := range items {
		if watch.IsKindNotFound(err) {
			r.awaitKind(it, watch.NoDefinitionError{Kind: k.gvk}.Error())
			continue
		}
		it.waiting = true
		it.refuse(classify(err))
	}
	if watch.IsKindNotFound(err) && k.abandoned() {
		r.applier.discard(k)
	}
}

// awaitServed registers the owner to be notified when the objects of a kind can be watched again,
// or when a definition in the group of the kind changes.
func (r *run) awaitServed(k *kind) {
	k.awaitServed(r.holder)
	if !strings.Contains(k.gvk.Group, ".") {
		return // no definition defines it
	}
	r.mu.Lock()
	r.groups[k.gvk.Group] = true
	r.mu.Unlock()
	r.applier.definitions.Await(r.holder, k.gvk.Group)
}

// failureOf returns the failure of the cluster as a whole that an error about a kind reveals, or
// nil. Kinds that the API server serves itself are unavailable only if it is; others may be served
// by another server.
func (r *run) failureOf(k *kind, err error) error {
	if failure := clusterFailure(err); failure != nil {
		return failure
	}
	overloaded := apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err)
	if overloaded && watch.IsBuiltIn(k.gvk.Group) {
		return watch.Stable(err)
	}
	return nil
}

// warn adds warnings of what is not watched.
func (r *run) warn(unwatched []manifest.Problem) {
	if len(unwatched) > 0 {
		r.missWatch()
		r.mu.Lock()
		r.warnings = append(r.warnings, unwatched...)
		r.mu.Unlock()
	}
}

// unwatched returns a warning for each namespace of a kind in which drift is not noticed, and has the
// holder be notified when it is.
func (k *kind) unwatched(h *holder, namespaces []string) []manifest.Problem {
	var warnings []manifest.Problem
	for _, namespace := range namespaces {
		if err := k.awaitAllowed(namespace, h); err != nil {
			warnings = append(warnings, manifest.Problem{
				ID:      k.scopeID(namespace),
				Reason:  ReasonNotWatched,
				Message: "edits and deletions by others are corrected only at the next reconciliation: " + rootCause(err),
			})
		}
	}
	return warnings
}
