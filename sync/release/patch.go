package release

import (
	"encoding/json"
	"fmt"

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
// set in it. If there is nothing to do, it sends nothing and returns live.
func (c *client) patch(before, info *resource.Info, live *unstructured.Unstructured, options metav1.PatchOptions) (*unstructured.Unstructured, error) {
	old, err := object(before)
	if err != nil {
		return nil, err
	}
	wanted, err := object(info)
	if err != nil {
		return nil, err
	}
	data, kind, err := threeWayPatch(info.Mapping.GroupVersionKind, old, wanted, live)
	if err != nil {
		return nil, err
	}
	if string(data) == "{}" {
		return live, nil
	}
	options.FieldManager = v1alpha1.HelmFieldManager
	return c.resource(info).Patch(c.ctx, info.Name, kind, data, options)
}

// threeWayPatch returns a patch of what changed from old to wanted, and of what differs between
// live and wanted. Lists of Kubernetes' own kinds are merged by their keys; other kinds are merged
// as plain JSON.
func threeWayPatch(gvk schema.GroupVersionKind, old, wanted, live *unstructured.Unstructured) ([]byte, types.PatchType, error) {
	documents := make([][]byte, 3)
	for i, o := range []*unstructured.Unstructured{old, wanted, live} {
		data, err := json.Marshal(o.Object)
		if err != nil {
			return nil, "", fmt.Errorf("encode: %w", err)
		}
		documents[i] = data
	}
	typed, err := scheme.Scheme.New(gvk)
	if err != nil {
		data, err := jsonmergepatch.CreateThreeWayJSONMergePatch(documents[0], documents[1], documents[2])
		if err != nil {
			return nil, "", fmt.Errorf("make patch: %w", err)
		}
		return data, types.MergePatchType, nil
	}
	lists, err := strategicpatch.NewPatchMetaFromStruct(typed)
	if err != nil {
		return nil, "", fmt.Errorf("make patch: %w", err)
	}
	data, err := strategicpatch.CreateThreeWayMergePatch(documents[0], documents[1], documents[2], lists, true)
	if err != nil {
		return nil, "", fmt.Errorf("make patch: %w", err)
	}
	return data, types.StrategicMergePatchType, nil
}
