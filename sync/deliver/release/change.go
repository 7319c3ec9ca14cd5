package release

import (
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"

	"waybill.dev/waybill/api/v1alpha1"
)

// change brings an object to its target without reading it, if all that is to be done is what changed from
// before: the object is still what before says. What did not change is sent no request. It reports false if
// the object has to be read first; then nothing was written.
func (c *client) change(before, info *resource.Info) (bool, error) {
	version := c.versionOf(before, info)
	if version == "" {
		return false, nil
	}
	p, err := c.changes(before, info, version)
	if err != nil {
		return false, err
	}
	if p.empty() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.untouched = append(c.untouched, idOf(info))
		return true, nil
	}
	patched, err := c.sendChange(p, info)
	if isElse(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.written[idOf(info)] = patched
	return true, nil
}

// sendChange sends a patch and returns the metadata of the object as it is then. The rest, which is not needed,
// would take both sides as much time as the patch.
func (c *client) sendChange(p patchData, info *resource.Info) (*metav1.PartialObjectMetadata, error) {
	all := c.metadata.Resource(info.Mapping.Resource)
	options := metav1.PatchOptions{FieldManager: v1alpha1.HelmFieldManager}
	if info.Namespaced() {
		return all.Namespace(info.Namespace).Patch(c.ctx, info.Name, p.kind, p.data, options)
	}
	return all.Patch(c.ctx, info.Name, p.kind, p.data, options)
}

// isElse reports whether an error may be because the object is not what it was assumed to be.
func isElse(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsInvalid(err)
}

// versionOf returns the resourceVersion at which an object is known to be as before says; empty if it has to
// be read: it may be otherwise, or what is to be written depends on what others have set.
func (c *client) versionOf(before, info *resource.Info) string {
	if c.untouchedAt == nil || before == nil || before.Mapping.GroupVersionKind != info.Mapping.GroupVersionKind {
		return ""
	}
	for _, had := range c.leftovers {
		if had.objects.Get(info) != nil {
			return ""
		}
	}
	for _, one := range []*resource.Info{before, info} {
		o, err := object(one)
		if err != nil || c.id.Ignored.Of(o, info.Namespace) != nil {
			return ""
		}
	}
	return c.untouchedAt(idOf(info))
}

// changes returns the patch of what changed from before to info, on condition that the object has that
// resourceVersion.
func (c *client) changes(before, info *resource.Info, version string) (patchData, error) {
	var none patchData
	if err := c.mark(before); err != nil { // as the object is, and as Helm has marked info
		return none, err
	}
	old, err := object(before)
	if err != nil {
		return none, err
	}
	wanted, err := object(info)
	if err != nil {
		return none, err
	}
	merge, err := mergeOf(info.Mapping.GroupVersionKind)
	if err != nil {
		return none, err
	}
	changes, err := merge.twoWay(old.Object, wanted.Object)
	if err == nil && len(changes) > 0 {
		err = unstructured.SetNestedField(changes, version, "metadata", "resourceVersion")
	}
	if err != nil {
		return none, fmt.Errorf("make patch: %w", err)
	}
	data, err := json.Marshal(changes)
	if err != nil {
		return none, fmt.Errorf("encode patch: %w", err)
	}
	return patchData{kind: merge.kind(), data: data}, nil
}
