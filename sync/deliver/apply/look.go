package apply

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/sync/cluster/watch"
	"waybill.dev/waybill/sync/manifest"
)

const (
	// maxGets is how many unknown objects of a kind in a namespace are read one by one. If there
	// are more, the kind is listed.
	maxGets = 3
	// pageSize is the number of objects in one page of such a list.
	pageSize = 500
)

// found records the object that the API server returned; nil if there is none.
func (s *sight) found(object metav1.Object) {
	s.known, s.live, s.managers = true, nil, nil
	if object == nil {
		return
	}
	s.live = observe(object, false).live
	for _, entry := range object.GetManagedFields() {
		s.managers = append(s.managers, entry.Manager)
	}
	slices.Sort(s.managers)
	s.managers = slices.Compact(s.managers)
}

// lookUp reads one object. If that fails, it records why and returns false: an object whose state
// is not known is not written.
func (r *run) lookUp(ctx context.Context, it *item) bool {
	err := r.read(ctx, it.kind, it.id, &it.sight)
	if err != nil {
		r.refused(ctx, it, err)
	}
	return err == nil
}

// read reads one object.
func (r *run) read(ctx context.Context, k *kind, id manifest.ID, s *sight) error {
	object, err := r.client(k, id).Get(ctx, id.Name, metav1.GetOptions{})
	switch {
	case err == nil:
		s.found(object)
	case apierrors.IsNotFound(err) && !watch.IsKindNotFound(err):
		s.found(nil)
	default:
		return err
	}
	return nil
}

// scopeKey is a kind in a namespace.
type scopeKey struct {
	kind      *kind
	namespace string
}

// lookUpMany looks up the items that no watch shows, if there are more than maxGets of a kind in a
// namespace. They may exist without our label.
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

// list looks for items in a list of their kind. Items that it does not find out about that way are
// read one by one later: if the list is forbidden, expires, or has more pages than there are items
// to find.
func (r *run) list(ctx context.Context, scope scopeKey, items []*item) {
	unknown := make(map[string]*item, len(items))
	for _, it := range items {
		unknown[it.id.Name] = it
	}
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := r.client(scope.kind, items[0].id).List(ctx, options)
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
