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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"waybill.dev/waybill/sync/cluster/watch"
	"waybill.dev/waybill/sync/manifest"
)

// resolveRemovals turns identities into removals with their kinds, one for each object. It leaves
// out objects that turn out to be wanted under the identity that they have on the API server.
func (r *run) resolveRemovals(ctx context.Context, stale []manifest.ID) {
	known := make(map[manifest.ID]bool, len(r.items))
	for _, id := range r.wanted() {
		known[id.Key()] = true
	}
	found := make(map[kindName]lookup)
	for _, id := range stale {
		if r.failed() {
			return
		}
		name := kindName{id.Group, id.Kind}
		answer, asked := found[name]
		if !asked {
			answer.kind, answer.err = r.removalKind(ctx, id)
			found[name] = answer
		}
		if answer.kind != nil && !answer.kind.namespaced {
			id.Namespace = ""
		}
		if known[id.Key()] {
			continue
		}
		known[id.Key()] = true
		rm := &removal{id: id, kind: answer.kind, done: answer.kind == nil && answer.err == nil}
		r.removals = append(r.removals, rm)
		if answer.err != nil {
			rm.refuse(classify(answer.err))
		}
	}
	r.rankRemovals()
}

// removalKind returns the kind of an object to delete: in the version that it was delivered with,
// or in any other that is served. It returns nil for a kind that is not served at all, of which
// there can be no objects.
func (r *run) removalKind(ctx context.Context, id manifest.ID) (*kind, error) {
	k, err := r.applier.kindOf(ctx, r.holder, id.GroupVersionKind())
	if err == nil || !meta.IsNoMatchError(err) {
		return k, r.note(err)
	}
	mapping, err := watch.Mapping(ctx, r.applier.target.Mapper(), id.GroupVersionKind().GroupKind())
	if err == nil {
		return r.applier.attach(r.holder, mapping.GroupVersionKind, mapping), nil
	}
	if !meta.IsNoMatchError(err) {
		return nil, r.note(err)
	}
	// A kind that discovery does not know may be new, or unavailable for a moment.
	served, failure := r.served(ctx, id.GroupVersionKind().GroupKind())
	if failure != nil {
		return nil, r.note(failure)
	}
	if served {
		return nil, fmt.Errorf("%w; it is deleted once discovery knows the kind", err)
	}
	return nil, nil
}

// note returns err, and fails the run if err is a failure of the cluster as a whole.
func (r *run) note(err error) error {
	if err != nil {
		if failure := clusterFailure(err); failure != nil {
			r.fail(failure)
		}
	}
	return err
}

// served asks the API server itself whether it serves a kind, in any version: by its definition,
// because discovery learns late of a version that is added, or else by discovery.
func (r *run) served(ctx context.Context, kind schema.GroupKind) (bool, error) {
	if !watch.IsBuiltIn(kind.Group) {
		_, err := r.applier.definitions.Find(ctx, r.holder, kind.WithVersion(""))
		var (
			missing watch.NoDefinitionError
			hidden  watch.HiddenError
			pending watch.NotEstablishedError
		)
		switch {
		case err == nil, errors.As(err, &pending) && pending.Refusal == "":
			return true, nil
		case !errors.As(err, &missing) && !errors.As(err, &hidden) && !errors.As(err, &pending):
			return false, err
		}
	}
	return r.discovered(ctx, kind)
}

// discovered asks discovery whether a kind is served, past what is remembered of it.
func (r *run) discovered(ctx context.Context, kind schema.GroupKind) (bool, error) {
	client := r.applier.target.Discovery().RESTClient()
	paths := []string{"/api/v1"}
	if kind.Group != "" {
		var group metav1.APIGroup
		err := client.Get().AbsPath("/apis", kind.Group).Do(ctx).Into(&group)
		if err != nil && !apierrors.IsNotFound(err) {
			return false, fmt.Errorf("ask for group %s: %w", kind.Group, err)
		}
		paths = nil
		for _, version := range group.Versions {
			paths = append(paths, "/apis/"+version.GroupVersion)
		}
	}
	for _, path := range paths {
		var list metav1.APIResourceList
		err := client.Get().AbsPath(path).Do(ctx).Into(&list)
		if err != nil && !apierrors.IsNotFound(err) {
			return false, fmt.Errorf("ask for %s: %w", path, err)
		}
		if slices.ContainsFunc(list.APIResources, func(a metav1.APIResource) bool { return a.Kind == kind.Kind }) {
			return true, nil
		}
	}
	return false, nil
}

// rankRemovals decides the order in which objects are deleted.
func (r *run) rankRemovals() {
	defined := make(map[string]bool)
	for _, rm := range r.removals {
		if isDefinition(rm.id) {
			_, group, _ := strings.Cut(rm.id.Name, ".") // `<plural>.<group>`, always
			defined[group] = true
		}
	}
	for _, rm := range r.removals {
		kind := schema.GroupKind{Group: rm.id.Group, Kind: rm.id.Kind}
		switch {
		case kind == crdKind || kind == namespaceKind:
			rm.rank = foundation
		case defined[rm.id.Group]:
			rm.rank = custom
		case rm.id.Namespace != "":
			rm.rank = namespaced
		default:
			rm.rank = clusterScoped
		}
	}
}

// coverRemovals makes sure that the objects are watched, so that it is noticed when they go.
func (r *run) coverRemovals(ctx context.Context) {
	byKind := make(map[*kind][]*removal)
	for _, rm := range r.removals {
		if rm.kind != nil {
			byKind[rm.kind] = append(byKind[rm.kind], rm)
		}
	}
	each(ctx, r, slices.Collect(maps.Keys(byKind)), func(ctx context.Context, k *kind) {
		namespaces := make(map[string]bool)
		for _, rm := range byKind[k] {
			namespaces[rm.id.Namespace] = true
		}
		if err := k.cover(ctx, slices.Sorted(maps.Keys(namespaces))); err != nil {
			r.removalsUncovered(ctx, k, byKind[k], err)
		}
	})
}

// removalsUncovered records that the state of the objects of a kind is not known. If the kind has
// gone since it was looked up, there are no objects left.
func (r *run) removalsUncovered(ctx context.Context, k *kind, removals []*removal, err error) {
	if failure := r.failureOf(k, err); failure != nil {
		r.fail(failure)
		return
	}
	gone := false
	if watch.IsKindNotFound(err) {
		served, failure := r.served(ctx, k.gvk.GroupKind())
		gone = !served && r.note(failure) == nil
		r.applier.discard(k)
	}
	r.awaitServed(k)
	for _, rm := range removals {
		if rm.done = gone; !gone {
			rm.refuse(classify(err))
		}
	}
}
