package plain

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/render/internal/yamlvalue"
)

// document is one decoded document of a file.
type document struct {
	// line is where its content begins.
	line int
	// value is its content, in the types that unstructured objects are made of; nil for an empty
	// document.
	value any
	// itemLines are the lines where the items of a list begin; empty if unknown.
	itemLines []int
	// flaw is set if the document could not be decoded, and id is the object that it is about, as
	// far as known.
	flaw *yamlvalue.Flaw
	id   manifest.ID
}

// objects returns the objects of a document: one, or the items of a list.
func (d document) objects(file string) ([]manifest.Object, []manifest.Problem) {
	if d.flaw != nil {
		return nil, []manifest.Problem{{ID: d.id, File: file, Line: d.flaw.Line, Reason: d.flaw.Reason, Message: d.flaw.Message}}
	}
	switch value := d.value.(type) {
	case nil:
		return nil, nil
	case map[string]any:
		if items, ok := listItems(value); ok {
			return d.unfold(value, items, file)
		}
		return check(value, file, d.line)
	default:
		return nil, []manifest.Problem{{
			File: file, Line: d.line, Reason: manifest.ReasonInvalidManifest,
			Message: "the document is not an object; " + notAManifest,
		}}
	}
}

// notAManifest says what to do about files that are not manifests.
const notAManifest = "if the file is not a manifest, add it to " + ignoreFile + " or to spec.ignore"

// listItems returns the items of a List, or of a typed one such as a ConfigMapList.
func listItems(value map[string]any) ([]any, bool) {
	kind, _ := value["kind"].(string)
	items, ok := value["items"].([]any)
	return items, ok && strings.HasSuffix(kind, "List")
}

// unfold returns the items of a list as separate objects. The items of a typed list need not have
// apiVersion and kind.
func (d document) unfold(list map[string]any, items []any, file string) ([]manifest.Object, []manifest.Problem) {
	var objects []manifest.Object
	var problems []manifest.Problem
	itemKind := strings.TrimSuffix(list["kind"].(string), "List")
	for i, item := range items {
		line := d.line
		if i < len(d.itemLines) {
			line = d.itemLines[i]
		}
		if object, ok := item.(map[string]any); ok && itemKind != "" {
			inherit(object, "kind", itemKind)
			inherit(object, "apiVersion", list["apiVersion"])
		}
		found, wrong := document{line: line, value: item}.objects(file)
		objects = append(objects, found...)
		problems = append(problems, wrong...)
	}
	return objects, problems
}

func inherit(object map[string]any, field string, value any) {
	if _, ok := object[field]; !ok && value != nil {
		object[field] = value
	}
}

// check turns a value into an object, if it has what every object must have.
func check(value map[string]any, file string, line int) ([]manifest.Object, []manifest.Problem) {
	object := manifest.Object{Unstructured: &unstructured.Unstructured{Object: value}, File: file, Line: line}
	if message := wrongWith(value); message != "" {
		return nil, []manifest.Problem{{
			ID: object.ID(), File: file, Line: line, Reason: manifest.ReasonInvalidManifest, Message: message,
		}}
	}
	return []manifest.Object{object}, nil
}

// wrongWith returns what a value lacks to be an object, or "".
func wrongWith(value map[string]any) string {
	apiVersion, _ := value["apiVersion"].(string)
	kind, _ := value["kind"].(string)
	metadata, _ := value["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	switch {
	case manifest.IsEncrypted(value):
		return manifest.EncryptedMessage + " (add it to " + ignoreFile + " or to spec.ignore)"
	case apiVersion == "" && kind == "":
		return "the document is not a Kubernetes object: it has neither apiVersion nor kind; " + notAManifest
	case apiVersion == "":
		return "apiVersion is missing, or not a string"
	case kind == "":
		return "kind is missing, or not a string"
	case name == "" && metadata["generateName"] != nil:
		return "metadata.generateName cannot be applied again and again; set metadata.name"
	case name == "":
		return "metadata.name is missing, or not a string"
	}
	if namespace, ok := metadata["namespace"]; ok && namespace != nil {
		if _, ok := namespace.(string); !ok {
			return "metadata.namespace is not a string"
		}
	}
	if _, err := schema.ParseGroupVersion(apiVersion); err != nil {
		return fmt.Sprintf("apiVersion %q is not of the form group/version", apiVersion)
	}
	return ""
}
