package applicationdefinition

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster/watch"
)

// partial returns an object for the metadata of a definition. In user clusters only metadata is
// watched: the catalog is held in memory once, on the hub.
func partial() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.ApplicationDefinitionKind))
	return m
}

// watch starts a watch that adds every copy that changes. It returns once all
// copies are known.
func (c *copier) watch(ctx context.Context) error {
	if c.watched {
		return nil
	}
	_, registration, err := watch.Handle(ctx, c.cluster.Cache(), partial(), toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { c.Add(o.(client.Object).GetName()) },
		UpdateFunc: func(_, o any) { c.Add(o.(client.Object).GetName()) },
		DeleteFunc: c.deleted,
	})
	if err != nil {
		return err
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return ctx.Err()
	}
	c.watched = true
	return nil
}

// deleted forgets a copy that is gone, and adds it.
func (c *copier) deleted(o any) {
	gone := watch.Deleted(o)
	if gone == nil {
		return
	}
	c.known.Change(gone.GetName(), func(v verified) (verified, bool) { return v, v.uid != "" && v.uid != gone.GetUID() })
	c.Add(gone.GetName())
}

// verify reads the copies in full: their metadata does not show whether others edited them while
// there was no watch.
func (c *copier) verify(ctx context.Context) error {
	options := metav1.ListOptions{Limit: 50}
	for {
		list, err := c.cluster.Dynamic().Resource(definitions).List(ctx, options)
		if err != nil {
			return fmt.Errorf("read copies: %w", err)
		}
		for i := range list.Items {
			if err := c.compare(ctx, &list.Items[i]); err != nil {
				return err
			}
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

// compare records which offer a copy is equal to.
func (c *copier) compare(ctx context.Context, live *unstructured.Unstructured) error {
	if live.GetAnnotations()[v1alpha1.CopyOfAnnotation] != c.r.HubID {
		return nil
	}
	offered, _, err := c.r.offeredTo(ctx, live.GetName(), c.cluster.Name())
	if err != nil || offered == nil {
		return client.IgnoreNotFound(err)
	}
	v := verified{uid: live.GetUID(), version: live.GetResourceVersion(), generation: live.GetGeneration()}
	specHash, err := hashJSON(live.Object["spec"])
	if err != nil {
		return fmt.Errorf("read copy of %s: %w", live.GetName(), err)
	}
	versions, _, _ := unstructured.NestedString(live.Object, "status", "versions") // empty if it is not a string
	schemas, _, _ := unstructured.NestedFieldNoCopy(live.Object, "status", "valuesSchemas")
	schemasHash, err := hashJSON(schemas)
	if err != nil {
		return fmt.Errorf("read copy of %s: %w", live.GetName(), err)
	}
	reported := offered.statusBody == nil || versions == offered.versions && schemasHash == offered.schemasHash
	if specHash == offered.specHash && reported {
		v.hash = offered.hash
	}
	c.known.Put(live.GetName(), v)
	return nil
}

// live returns the metadata of a copy as seen by the watch; nil if there is none.
func (c *copier) live(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	found := partial()
	err := c.cluster.Cache().Get(ctx, client.ObjectKey{Name: name}, found)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get copy: %w", err)
	}
	return found, nil
}

// apply writes a copy, and then, in a user cluster, the part of its status that is shown in tables.
func (c *copier) apply(ctx context.Context, name string, offered *form, force bool) error {
	options := metav1.PatchOptions{FieldManager: v1alpha1.FieldManager, Force: ptr.To(force)}
	written, err := c.copies.Patch(ctx, name, types.ApplyPatchType, offered.body, options)
	if err == nil && force && shared(written) {
		written, err = c.replaceSpec(ctx, name, offered)
	}
	if err == nil && offered.forced != written.Annotations[v1alpha1.ForceRemoveAnnotation] {
		written, err = c.unforce(ctx, name)
	}
	switch {
	case !force && apierrors.IsConflict(err):
		return errForeign // it appeared a moment ago
	case err != nil:
		return fmt.Errorf("write the copy: %w", err)
	}
	return c.report(ctx, written, offered)
}

// report writes what goes with a copy that is as it should be: the schemas of its values, and its status.
func (c *copier) report(ctx context.Context, copied *metav1.PartialObjectMetadata, offered *form) error {
	if err := c.putSchemas(ctx, copied, offered); err != nil {
		return err
	}
	written := copied
	if offered.statusBody != nil {
		options := metav1.PatchOptions{FieldManager: v1alpha1.FieldManager, Force: ptr.To(true)}
		var err error
		if written, err = c.copies.Patch(ctx, copied.Name, types.ApplyPatchType, offered.statusBody, options, "status"); err != nil {
			return fmt.Errorf("write the status of the copy: %w", err)
		}
	}
	c.known.Put(copied.Name, c.known.Get(copied.Name).next(written, offered, c.r.kernel.Backoff))
	return nil
}

// shared reports whether others own fields of a copy's spec. An apply leaves fields alone that
// others have added.
func shared(copied *metav1.PartialObjectMetadata) bool {
	return slices.ContainsFunc(copied.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
		ours := e.Manager == v1alpha1.FieldManager && e.Operation == metav1.ManagedFieldsOperationApply
		return !ours && e.FieldsV1 != nil && strings.Contains(e.FieldsV1.GetRawString(), `"f:spec"`)
	})
}

// replaceSpec replaces the spec of a copy, so that it holds nothing that the hub does not offer.
func (c *copier) replaceSpec(ctx context.Context, name string, offered *form) (*metav1.PartialObjectMetadata, error) {
	wanted := struct {
		Spec json.RawMessage `json:"spec"`
	}{}
	if err := json.Unmarshal(offered.body, &wanted); err != nil {
		return nil, err
	}
	patch, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/spec", "value": wanted.Spec}})
	if err != nil {
		return nil, err
	}
	return c.copies.Patch(ctx, name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: v1alpha1.FieldManager})
}

// unforce removes an annotation force-remove that others wrote.
func (c *copier) unforce(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{v1alpha1.ForceRemoveAnnotation: nil}}})
	if err != nil {
		return nil, err
	}
	return c.copies.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: v1alpha1.FieldManager})
}

// delete deletes a copy, unless it was replaced since it was read.
func (c *copier) delete(ctx context.Context, live *metav1.PartialObjectMetadata) error {
	err := c.copies.Delete(ctx, live.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &live.UID}})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete the copy: %w", err)
	}
	return nil
}
