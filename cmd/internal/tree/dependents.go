package tree

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
func (d *dependent) node(at *clusterReader) *treeNode {
	node := newNode(idOf(d.object), at)
	switch {
	case d.err != nil:
		node.Health, node.Message = unread(d.err)
		return node
	case !health.HasStatus(d.object.GroupVersionKind().GroupKind()):
		node.read(d.object)
		node.Health, node.Message = health.OfMetadata(d.object.GetDeletionTimestamp() != nil)
		return node
	}
	return describe(d.object, at)
}

// dependents returns the objects that an object owns: in its namespace, or anywhere if it is
// cluster-scoped. They are of the kinds that its kind is known to own, else of any. Each is read as
// far as its health needs it.
func (r *clusterReader) dependents(ctx context.Context, of *unstructured.Unstructured) []*dependent {
	if of.GetUID() == "" {
		return nil
	}
	var found []*dependent
	kinds, known := childKinds(of.GroupVersionKind().GroupKind())
	for _, kind := range kinds {
		found = append(found, r.inFull(ctx, place{kind: kind, namespace: of.GetNamespace()})[of.GetUID()]...)
	}
	if !known {
		found = r.ofAnyKind(ctx, of)
	}
	r.readAll(ctx, found)
	return r.heeded(of, found)
}

// heeded returns the objects that are worth showing: in the namespace of their owner, as Kubernetes
// heeds no other references, and not retired. An object that several groups serve is taken once.
func (r *clusterReader) heeded(owner *unstructured.Unstructured, found []*dependent) []*dependent {
	var kept []*dependent
	seen := map[types.UID]bool{}
	for _, d := range found {
		elsewhere := owner.GetNamespace() != "" && owner.GetNamespace() != d.object.GetNamespace()
		switch uid := d.object.GetUID(); {
		case d.err == nil && (elsewhere || retired(d.object)):
			r.mu.Lock()
			r.aside[uid] = d.object.GetResourceVersion()
			r.mu.Unlock()
		case !elsewhere && !seen[uid]:
			seen[uid] = true
			kept = append(kept, d)
		}
	}
	return kept
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
			d := &dependent{object: &list[i]}
			d.full.Do(func() {})
			found.add(d)
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
