package helm

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/expansion"
	"waybill.dev/waybill/sync/manifest"
)

// appendObjects parses the documents of a file and appends their objects; lists are split into
// their items.
func appendObjects(to []manifest.Object, file string, data []byte) ([]manifest.Object, error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return to, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrRender, file, err)
		}
		parsed, err := parseDocument(document)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrRender, file, err)
		}
		for _, object := range parsed {
			to = append(to, manifest.Object{Unstructured: object, File: file})
		}
	}
}

// Objects parses manifests, as Stamp returns them. Lists are split into their items.
func Objects(manifests []byte) ([]*unstructured.Unstructured, error) {
	parsed, err := appendObjects(nil, "manifests", manifests)
	if err != nil {
		return nil, err
	}
	objects := make([]*unstructured.Unstructured, len(parsed))
	for i, o := range parsed {
		objects[i] = o.Unstructured
	}
	return objects, nil
}

func parseDocument(document []byte) ([]*unstructured.Unstructured, error) {
	if err := expansion.Text(document, expansion.Limits{}); err != nil {
		return nil, err
	}
	text, err := yaml.YAMLToJSON(document)
	if err != nil {
		return nil, err
	}
	if string(text) == "null" {
		return nil, nil
	}
	parsed, err := runtime.Decode(unstructured.UnstructuredJSONScheme, text)
	if err != nil {
		return nil, err
	}
	list, isList := parsed.(*unstructured.UnstructuredList)
	if !isList {
		return []*unstructured.Unstructured{parsed.(*unstructured.Unstructured)}, nil
	}
	objects := make([]*unstructured.Unstructured, len(list.Items))
	for i := range list.Items {
		objects[i] = &list.Items[i]
	}
	return objects, nil
}
