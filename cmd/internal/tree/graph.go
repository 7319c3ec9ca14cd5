package tree

import (
	"context"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/cmd/internal/fleet"
)

// graph holds the objects that have owners, in a namespace or in the whole cluster.
type graph struct {
	owned byOwner
	// forbidden are the kinds that may not be listed there.
	forbidden []fleet.Resource
}

// fewNamespaces is in how many namespaces of a cluster all kinds are listed. If a tree leads to more
// of them, all kinds are listed in the whole cluster, once, so that namespaces do not multiply the
// requests.
const fewNamespaces = 8

// isOneOfFew reports whether a namespace is one of the first that it was called for.
func (r *clusterReader) isOneOfFew(namespace string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.few, namespace) && len(r.few) < fewNamespaces {
		r.few = append(r.few, namespace)
	}
	return slices.Contains(r.few, namespace)
}

// ofAnyKind returns what an object owns, of all kinds that can be listed.
func (r *clusterReader) ofAnyKind(ctx context.Context, of *unstructured.Unstructured) []*dependent {
	namespace, uid := of.GetNamespace(), of.GetUID()
	if namespace != "" && r.isOneOfFew(namespace) {
		return r.within(ctx, namespace, r.kinds)[uid]
	}
	whole := once(r, r.graphs, "", func() graph { return r.load(ctx, r.kinds(), "") })
	if namespace == "" {
		r.warn(whole, "")
		return whole.owned[uid]
	}
	// A user who may not list a kind in the whole cluster may be allowed to in the namespace.
	rest := r.within(ctx, namespace, func() []fleet.Resource { return whole.forbidden })
	return slices.Concat(whole.owned[uid], rest[uid])
}

// within returns the objects of some kinds that have owners in a namespace. The kinds are asked for
// once per namespace.
func (r *clusterReader) within(ctx context.Context, namespace string, kinds func() []fleet.Resource) byOwner {
	return once(r, r.graphs, namespace, func() graph {
		clusterScoped := func(kind fleet.Resource) bool { return !kind.Namespaced }
		found := r.load(ctx, slices.DeleteFunc(slices.Clone(kinds()), clusterScoped), namespace)
		r.warn(found, namespace)
		return found
	}).owned
}

// warn notes the kinds that are missing in a graph.
func (r *clusterReader) warn(g graph, namespace string) {
	for _, kind := range g.forbidden {
		r.forbidden(where{r.name(), namespace}, kind.String())
	}
}

// load lists kinds in a namespace; empty means the whole cluster.
func (r *clusterReader) load(ctx context.Context, kinds []fleet.Resource, namespace string) graph {
	found, forbidden := make([]byOwner, len(kinds)), make([]bool, len(kinds))
	var lists sync.WaitGroup
	for i, kind := range kinds {
		lists.Go(func() { found[i], forbidden[i] = r.withOwners(ctx, kind, namespace) })
	}
	lists.Wait()
	g := graph{owned: byOwner{}}
	for i, kind := range kinds {
		if forbidden[i] {
			g.forbidden = append(g.forbidden, kind)
		}
		for owner, objects := range found[i] {
			g.owned[owner] = append(g.owned[owner], objects...)
		}
	}
	return g
}

// withOwners returns the objects of a kind that have owners, or that the kind may not be listed. Only
// their metadata is read, except for mostlyOwned in a namespace.
func (r *clusterReader) withOwners(ctx context.Context, kind fleet.Resource, namespace string) (found byOwner, forbidden bool) {
	in := place{kind: kind.GroupVersionKind, namespace: namespace}
	list := r.metadata
	switch {
	case namespace == "":
		list = r.listMetadata // too much to be remembered, and asked for only once
	case slices.Contains(mostlyOwned, in.kind):
		return r.inFull(ctx, in), false
	}
	objects, err := list(ctx, kind.GroupVersionResource(), in)
	if err != nil {
		if forbidden = apierrors.IsForbidden(err); !forbidden && !fleet.NotListable(err) {
			r.unlisted(where{r.name(), namespace}, kind.String(), err)
		}
		return nil, forbidden
	}
	found = byOwner{}
	for i := range objects {
		if len(objects[i].OwnerReferences) == 0 {
			continue
		}
		object, err := withoutContent(in.kind, &objects[i])
		if err != nil {
			r.note(err.Error())
			continue
		}
		found.add(&dependent{object: object})
	}
	return found, false
}
