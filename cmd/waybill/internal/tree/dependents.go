package tree

import (
	"context"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/cmd/waybill/internal/fleet"
	"waybill.dev/waybill/sync/health"
)

// dependent is an object that has owners.
type dependent struct {
	object *unstructured.Unstructured // its metadata, or all of it
	err    error                      // why it could not be read in full
	full   sync.Once                  // reads it in full
}

// byOwner holds objects by the UIDs of their owners.
type byOwner map[types.UID][]*dependent

// node returns the node of the object.
func (d *dependent) node(cluster string) *treeNode {
	node := newNode(idOf(d.object), cluster)
	switch {
	case d.err != nil:
		node.Health, node.Message = unread(d.err)
		return node
	case !health.HasStatus(d.object.GroupVersionKind().GroupKind()):
		node.Health, node.Message = health.OfMetadata(d.object.GetDeletionTimestamp() != nil)
		return node
	}
	return describe(d.object, cluster)
}

// dependents returns the objects that an object owns in its namespace: those of the kinds that its
// kind is known to own, else those of every kind. Their health can be told.
func (r *clusterReader) dependents(ctx context.Context, of *unstructured.Unstructured) []*dependent {
	if of.GetNamespace() == "" || of.GetUID() == "" {
		return nil
	}
	kinds, known := childKinds(of.GroupVersionKind().GroupKind())
	if !known {
		found := r.graph(ctx, of.GetNamespace())[of.GetUID()]
		r.readAll(ctx, found)
		return found
	}
	var found []*dependent
	for _, kind := range kinds {
		found = append(found, r.inFull(ctx, place{kind: kind, namespace: of.GetNamespace()})[of.GetUID()]...)
	}
	return found
}

// inFull returns the objects of a kind in a namespace that have owners, from one list.
func (r *clusterReader) inFull(ctx context.Context, in place) byOwner {
	return once(r, r.owned, in, func() byOwner {
		list, err := r.list(ctx, in.kind, client.InNamespace(in.namespace))
		if err != nil {
			r.unlisted(where{r.name(), in.namespace}, in.kind.GroupKind().String(), err)
			return nil
		}
		found := byOwner{}
		for i := range list {
			if !retired(&list[i]) {
				d := &dependent{object: &list[i]}
				d.full.Do(func() {})
				found.add(d)
			}
		}
		return found
	})
}

// retired reports whether an object is a ReplicaSet that its Deployment keeps for a rollback.
func retired(object *unstructured.Unstructured) bool {
	if object.GetKind() != replicaSets.Kind {
		return false
	}
	wanted, _, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
	there, _, _ := unstructured.NestedInt64(object.Object, "status", "replicas")
	return wanted == 0 && there == 0
}

func (b byOwner) add(d *dependent) {
	for _, owner := range d.object.GetOwnerReferences() {
		b[owner.UID] = append(b[owner.UID], d)
	}
}

// graph returns the objects of a namespace that have owners, of all kinds that can be listed. Except
// for those of mostlyOwned, only their metadata is read.
func (r *clusterReader) graph(ctx context.Context, namespace string) byOwner {
	return once(r, r.graphs, namespace, func() byOwner { return r.loadGraph(ctx, namespace) })
}

func (r *clusterReader) loadGraph(ctx context.Context, namespace string) byOwner {
	all, incomplete, err := r.cluster.Resources()
	for _, err := range []error{incomplete, err} {
		if err != nil {
			r.note("what objects own is not complete: cluster " + r.name() + ": " + err.Error())
		}
	}
	all = slices.DeleteFunc(all, func(r fleet.Resource) bool { return !r.Namespaced || !r.Can("list") || r.Kind == "Event" })
	found := make([]byOwner, len(all))
	var lists sync.WaitGroup
	for i, kind := range all {
		in := place{kind: kind.GroupVersionKind, namespace: namespace}
		if slices.Contains(mostlyOwned, in.kind) {
			lists.Go(func() { found[i] = r.inFull(ctx, in) })
			continue
		}
		lists.Go(func() { found[i] = r.asMetadata(ctx, kind.GroupVersionResource(), in) })
	}
	lists.Wait()
	return merge(found)
}

// merge joins what was found kind by kind. An object that several groups serve is taken once.
func merge(found []byOwner) byOwner {
	merged := byOwner{}
	for _, some := range found {
		for owner, objects := range some {
			for _, d := range objects {
				if !slices.ContainsFunc(merged[owner], func(o *dependent) bool { return o.object.GetUID() == d.object.GetUID() }) {
					merged[owner] = append(merged[owner], d)
				}
			}
		}
	}
	return merged
}

// asMetadata returns the metadata of the objects of a kind in a namespace that have owners.
func (r *clusterReader) asMetadata(ctx context.Context, resource schema.GroupVersionResource, in place) byOwner {
	list, err := r.metadata(ctx, resource, in)
	if err != nil {
		r.unlisted(where{r.name(), in.namespace}, in.kind.GroupKind().String(), err)
		return nil
	}
	found := byOwner{}
	for i := range list {
		if len(list[i].OwnerReferences) == 0 {
			continue
		}
		object, err := withoutContent(in.kind, &list[i])
		if err != nil {
			r.note(err.Error())
			continue
		}
		found.add(&dependent{object: object})
	}
	return found
}

// withoutContent returns an object of which only the metadata is known.
func withoutContent(kind schema.GroupVersionKind, meta *metav1.PartialObjectMetadata) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(meta)
	if err != nil {
		return nil, fmt.Errorf("read metadata of %s %s: %w", kind.Kind, meta.Name, err)
	}
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(kind)
	return object, nil
}

// readAll reads objects in full whose health depends on more than their metadata.
func (r *clusterReader) readAll(ctx context.Context, objects []*dependent) {
	var reads sync.WaitGroup
	for _, d := range objects {
		reads.Go(func() {
			d.full.Do(func() { r.readOne(ctx, d) })
		})
	}
	reads.Wait()
}

func (r *clusterReader) readOne(ctx context.Context, d *dependent) {
	in := place{kind: d.object.GroupVersionKind(), namespace: d.object.GetNamespace()}
	if !health.HasStatus(in.kind.GroupKind()) {
		return
	}
	object, err := r.get(ctx, in, d.object.GetName())
	if err != nil {
		d.err = err
		return
	}
	d.object = object
}

// manyGets is how many objects of a kind are read one by one in a namespace before all of them are
// listed.
const manyGets = 8

// get returns an object in full.
func (r *clusterReader) get(ctx context.Context, in place, name string) (*unstructured.Unstructured, error) {
	r.mu.Lock()
	r.gets[in]++
	many := r.gets[in] > manyGets
	r.mu.Unlock()
	if many {
		object := once(r, r.lists, in, func() map[string]*unstructured.Unstructured { return r.listByName(ctx, in) })[name]
		if object != nil {
			return object, nil
		}
	}
	c, err := r.client()
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(in.kind)
	defer r.acquire()()
	return object, c.Get(ctx, client.ObjectKey{Namespace: in.namespace, Name: name}, object)
}

// listByName returns the objects of a kind in a namespace; none if they cannot be listed.
func (r *clusterReader) listByName(ctx context.Context, in place) map[string]*unstructured.Unstructured {
	list, err := r.list(ctx, in.kind, client.InNamespace(in.namespace))
	if err != nil {
		return nil
	}
	found := map[string]*unstructured.Unstructured{}
	for i := range list {
		found[list[i].GetName()] = &list[i]
	}
	return found
}
