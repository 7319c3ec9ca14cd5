package apply

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/sync/watch"
)

const (
	// maxGets is how many unknown objects of a kind in a namespace are asked for
	// one by one. More are found by listing the kind.
	maxGets = 3
	// pageSize is the number of objects that one page of such a list has.
	pageSize = 500
)

// found takes in what the API server knows of an object; nil where there is none.
func (s *sight) found(object *metav1.PartialObjectMetadata) {
	s.known, s.live, s.managers = true, nil, nil
	if object == nil {
		return
	}
	s.live = observe(object, false).live
	for _, entry := range object.ManagedFields {
		s.managers = append(s.managers, entry.Manager)
	}
	slices.Sort(s.managers)
	s.managers = slices.Compact(s.managers)
}

// lookUp asks for one object. Where it cannot be had the item has a problem, and
// lookUp returns false: what is not known is not written.
func (r *run) lookUp(ctx context.Context, it *item) bool {
	object, err := it.kind.client(it.id.Namespace).Get(ctx, it.id.Name, metav1.GetOptions{})
	switch {
	case err == nil:
		it.sight.found(object)
	case apierrors.IsNotFound(err) && !watch.IsKindNotFound(err):
		it.sight.found(nil)
	default:
		r.refused(ctx, it, err)
		return false
	}
	return true
}

// scopeKey is a kind in a namespace.
type scopeKey struct {
	kind      *kind
	namespace string
}

// lookUpMany asks for the items that no watch shows, where they are many. They may
// exist, without our label.
func (r *run) lookUpMany(ctx context.Context, items []*item) {
	unknown := make(map[scopeKey][]*item)
	for _, it := range items {
		if !it.sight.known {
			key := scopeKey{it.kind, it.id.Namespace}
			unknown[key] = append(unknown[key], it)
		}
	}
	var scopes []scopeKey
	for key, items := range unknown {
		if len(items) > maxGets {
			scopes = append(scopes, key)
		}
	}
	each(ctx, r, scopes, func(ctx context.Context, key scopeKey) { r.list(ctx, key, unknown[key]) })
}

// list finds items in a list of their kind. Those that it does not get to know
// that way are asked for one by one later: where the list is forbidden, expires,
// or has more pages than there are items to find.
func (r *run) list(ctx context.Context, scope scopeKey, items []*item) {
	unknown := make(map[string]*item, len(items))
	for _, it := range items {
		unknown[it.id.Name] = it
	}
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := scope.kind.client(scope.namespace).List(ctx, options)
		if err != nil {
			if failure := clusterFailure(err); failure != nil {
				r.fail(failure)
			}
			return
		}
		for i := range page.Items {
			if it := unknown[page.Items[i].Name]; it != nil {
				it.sight.found(&page.Items[i])
				delete(unknown, it.id.Name)
			}
		}
		if page.Continue == "" {
			for _, it := range unknown {
				it.sight.found(nil)
			}
			return
		}
		if rest := page.RemainingItemCount; rest != nil && *rest/pageSize > int64(len(unknown)) || len(unknown) == 0 {
			return
		}
		options.Continue = page.Continue
	}
}
