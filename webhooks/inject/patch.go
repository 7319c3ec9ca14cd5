package inject

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/expansion"
	"waybill.dev/waybill/sync/membership"
)

// metadataOf reads from an object what membership needs. It stops after the metadata, which API
// servers write before everything that is large.
func metadataOf(raw []byte) (*metav1.PartialObjectMetadata, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if start, err := decoder.Token(); err != nil || start != json.Delim('{') {
		return nil, errors.New("decode object: not a JSON object")
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return nil, fmt.Errorf("decode object: %w", err)
		}
		if key != "metadata" {
			var other json.RawMessage
			if err := decoder.Decode(&other); err != nil {
				return nil, fmt.Errorf("decode object: %w", err)
			}
			continue
		}
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return nil, fmt.Errorf("decode metadata: %w", err)
		}
		if err := expansion.JSON(raw, expansion.DefaultJSONValues); err != nil {
			return nil, fmt.Errorf("metadata is too large: %w", err)
		}
		var metadata struct {
			Name        string            `json:"name"`
			Labels      map[string]string `json:"labels"`
			Annotations map[string]string `json:"annotations"`
		}
		if err := json.Unmarshal(raw, &metadata); err != nil {
			return nil, fmt.Errorf("decode metadata: %w", err)
		}
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Name: metadata.Name, Labels: metadata.Labels, Annotations: metadata.Annotations,
		}}, nil
	}
	return nil, errors.New("decode object: it has no metadata")
}

// patchOf returns the JSON patch that puts the marks on the object. It changes nothing but
// metadata.
func patchOf(obj metav1.Object, marks membership.Marks) []jsonpatch.Operation {
	return append(
		operations("/metadata/annotations", obj.GetAnnotations(), marks.Annotations),
		operations("/metadata/labels", obj.GetLabels(), marks.Labels)...)
}

func operations(path string, values map[string]string, changes map[string]*string) []jsonpatch.Operation {
	var ops []jsonpatch.Operation
	if len(changes) > 0 && values == nil { // there is nothing to add to, nor to remove from
		ops = append(ops, jsonpatch.NewOperation("add", path, map[string]string{}))
	}
	for _, key := range slices.Sorted(maps.Keys(changes)) {
		at := path + "/" + escape.Replace(key)
		if value := changes[key]; value != nil {
			ops = append(ops, jsonpatch.NewOperation("add", at, *value))
		} else {
			ops = append(ops, jsonpatch.NewOperation("remove", at, nil))
		}
	}
	return ops
}

// escape turns a key into a segment of a JSON pointer (RFC 6901).
var escape = strings.NewReplacer("~", "~0", "/", "~1")
