package release

import (
	"encoding/json"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/kubernetes/scheme"

	"waybill.dev/waybill/api/v1alpha1"
)

// patch brings live from what before contains to what info contains, and leaves what others have
// set in it. What only the leftovers have set is removed too. If there is nothing to do, patch sends
// nothing and returns live.
func (c *client) patch(before, info *resource.Info, live *unstructured.Unstructured, options metav1.PatchOptions) (*unstructured.Unstructured, error) {
	_, patched, err := c.bring(before, info, live, options)
	return patched, err
}

// bring is like patch, and also returns what it has sent. Where another field manager has changed the key of a list
// item, such as the port of a Service, merging adds ours beside theirs, which is often invalid. Then
// lists are set as a whole.
func (c *client) bring(before, info *resource.Info, live *unstructured.Unstructured, options metav1.PatchOptions) (patchData, *unstructured.Unstructured, error) {
	merge, err := mergeOf(info.Mapping.GroupVersionKind)
	if err != nil {
		return patchData{}, nil, err
	}
	p, patched, err := c.bringBy(merge, before, info, live, options)
	if apierrors.IsInvalid(err) && merge.lists != nil {
		if whole, set, err := c.bringBy(asWhole, before, info, live, options); err == nil {
			return whole, set, nil
		}
	}
	return p, patched, err
}

func (c *client) bringBy(merge merge, before, info *resource.Info, live *unstructured.Unstructured, options metav1.PatchOptions) (patchData, *unstructured.Unstructured, error) {
	p, err := c.patchOf(merge, before, info, live)
	if err != nil || p.empty() {
		return p, live, err
	}
	patched, err := c.send(p, info, options)
	return p, patched, err
}

// patchData is a patch that can be sent.
type patchData struct {
	kind types.PatchType
	data []byte
}

func (p patchData) empty() bool { return string(p.data) == "{}" }

// send sends a patch and returns the object as it is then.
func (c *client) send(p patchData, info *resource.Info, options metav1.PatchOptions) (*unstructured.Unstructured, error) {
	options.FieldManager = v1alpha1.HelmFieldManager
	return c.resource(info).Patch(c.ctx, info.Name, p.kind, p.data, options)
}

// patchOf returns the patch that patch sends.
func (c *client) patchOf(merge merge, before, info *resource.Info, live *unstructured.Unstructured) (patchData, error) {
	var none patchData
	old, err := object(before)
	if err != nil {
		return none, err
	}
	wanted, err := object(info)
	if err != nil {
		return none, err
	}
	ignored := c.id.Ignored.Of(wanted, info.Namespace)
	left, err := ignored.ToMerge(wanted.Object, live)
	if err != nil {
		return none, err
	}
	documents := make([][]byte, 3)
	for i, o := range []map[string]any{ignored.Without(old.Object), left, live.Object} {
		if documents[i], err = json.Marshal(o); err != nil {
			return none, fmt.Errorf("encode: %w", err)
		}
	}
	if documents[0], err = c.withLeftovers(documents[0], info, live, merge); err != nil {
		return none, err
	}
	data, err := merge.threeWay(documents[0], documents[1], documents[2])
	if err != nil {
		return none, fmt.Errorf("make patch: %w", err)
	}
	return patchData{kind: merge.kind(), data: data}, nil
}

// withLeftovers adds to base what the leftovers have set in live. What cannot be merged with base is
// left out: others may have written it.
func (c *client) withLeftovers(base []byte, info *resource.Info, live *unstructured.Unstructured, merge merge) ([]byte, error) {
	for _, had := range c.leftovers {
		claimed := had.objects.Get(info)
		if claimed == nil {
			continue
		}
		o, err := object(claimed)
		if err != nil {
			return nil, err
		}
		set, err := setByHelm(o, live)
		if err != nil {
			return nil, fmt.Errorf("read managed fields: %w", err)
		}
		more, err := json.Marshal(c.id.Ignored.Of(o, info.Namespace).Without(set))
		if err != nil {
			return nil, fmt.Errorf("encode: %w", err)
		}
		if both, err := merge.join(base, more); err == nil {
			base = both
		}
	}
	return base, nil
}

// merge is how objects of a kind are merged: lists of Kubernetes' own kinds by their keys, other
// kinds, for which lists is nil, as plain JSON.
type merge struct {
	lists strategicpatch.LookupPatchMeta
}

// asWhole merges objects of any kind as plain JSON.
var asWhole = merge{}

func mergeOf(gvk schema.GroupVersionKind) (merge, error) {
	typed, err := scheme.Scheme.New(gvk)
	if err != nil {
		return merge{}, nil
	}
	lists, err := strategicpatch.NewPatchMetaFromStruct(typed)
	if err != nil {
		return merge{}, fmt.Errorf("make patch: %w", err)
	}
	return merge{lists: lists}, nil
}

// kind returns the type of the patches that threeWay returns.
func (m merge) kind() types.PatchType {
	if m.lists == nil {
		return types.MergePatchType
	}
	return types.StrategicMergePatchType
}

// threeWay returns a patch of what changed from old to wanted, and of what differs between live and
// wanted.
func (m merge) threeWay(old, wanted, live []byte) ([]byte, error) {
	if m.lists == nil {
		return jsonmergepatch.CreateThreeWayJSONMergePatch(old, wanted, live)
	}
	return strategicpatch.CreateThreeWayMergePatch(old, wanted, live, m.lists, true)
}

// twoWay returns a patch of what changed from old to wanted, neither of which is changed.
func (m merge) twoWay(old, wanted map[string]any) (map[string]any, error) {
	if m.lists != nil {
		return strategicpatch.CreateTwoWayMergeMapPatchUsingLookupPatchMeta(old, wanted, m.lists)
	}
	documents := make([][]byte, 2)
	for i, o := range []map[string]any{old, wanted} {
		var err error
		if documents[i], err = json.Marshal(o); err != nil {
			return nil, err
		}
	}
	patch, err := jsonpatch.CreateMergePatch(documents[0], documents[1])
	if err != nil {
		return nil, err
	}
	var changes map[string]any
	err = json.Unmarshal(patch, &changes)
	return changes, err
}

// join returns what base and more contain together.
func (m merge) join(base, more []byte) ([]byte, error) {
	if m.lists == nil {
		return jsonpatch.MergePatch(base, more)
	}
	return strategicpatch.StrategicMergePatchUsingLookupPatchMeta(base, more, m.lists)
}
