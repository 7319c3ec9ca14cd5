package helm

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// maxManifestBytes bounds all manifests of one release together. Helm stores them, compressed, in
// one Secret of a megabyte; ten times that is never intended.
const maxManifestBytes = 10 << 20

// Stamp marks every object of rendered manifests with its owner. It changes only the metadata
// of objects: selectors and Pod templates stay as they are in the chart. It is a Helm
// post-renderer, which hooks do not pass through.
type Stamp struct {
	Labels      map[string]string
	Annotations map[string]string
}

// Run implements Helm's postrender.PostRenderer. It returns ErrRender for invalid or too large
// YAML.
func (s Stamp) Run(manifests *bytes.Buffer) (*bytes.Buffer, error) {
	if manifests.Len() > maxManifestBytes {
		return nil, fmt.Errorf("%w: manifests take %d bytes, and the limit is %d", ErrRender, manifests.Len(), maxManifestBytes)
	}
	out := &bytes.Buffer{}
	// One encoder for all: a new one takes more memory than a usual document.
	decoder, encoder := yaml.NewDecoder(manifests), yaml.NewEncoder(&bounded{to: out, left: 2 * maxManifestBytes})
	for begun := false; ; {
		var document yaml.Node
		err := decoder.Decode(&document)
		switch {
		case errors.Is(err, io.EOF) && !begun:
			return out, nil
		case errors.Is(err, io.EOF):
			return out, unwritten(encoder.Close())
		case err != nil:
			return nil, fmt.Errorf("%w: parse manifests: %w", ErrRender, err)
		}
		node := yaml.NewRNode(&document)
		if node.IsNil() || node.YNode().Kind != yaml.MappingNode {
			continue
		}
		if err := s.document(node); err != nil {
			return nil, err
		}
		if !begun {
			begun = true
			out.WriteString("---\n")
		}
		if err := unwritten(encoder.Encode(&document)); err != nil {
			return nil, err
		}
	}
}

// bounded fails when more is written than there is room for: each line is indented as deep as it is nested,
// so that a few bytes may become many.
type bounded struct {
	to   io.Writer
	left int
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, fmt.Errorf("manifests take more than %d bytes once they are indented", 2*maxManifestBytes)
	}
	return b.to.Write(p)
}

func unwritten(err error) error {
	if err != nil {
		err = fmt.Errorf("%w: write manifests: %w", ErrRender, err)
	}
	return err
}

func (s Stamp) document(node *yaml.RNode) error {
	for _, object := range objects(node) {
		if err := s.object(object); err != nil {
			return fmt.Errorf("%w: mark %s %s: %w", ErrRender, object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// objects returns the objects of a document: the items of a list, or the document itself. All
// clients treat an object with items as a list.
func objects(node *yaml.RNode) []*yaml.RNode {
	items, err := node.Pipe(yaml.Lookup("items"))
	if err != nil || items.IsNil() {
		return []*yaml.RNode{node}
	}
	elements, err := items.Elements()
	if err != nil {
		return []*yaml.RNode{node}
	}
	return elements
}

func (s Stamp) object(node *yaml.RNode) error {
	for _, field := range []struct {
		name  string
		marks map[string]string
	}{{"labels", s.Labels}, {"annotations", s.Annotations}} {
		if len(field.marks) == 0 {
			continue
		}
		if err := dropNull(node, "metadata", field.name); err != nil {
			return err
		}
		target, err := node.Pipe(yaml.LookupCreate(yaml.MappingNode, "metadata", field.name))
		if err != nil {
			return err
		}
		for _, key := range slices.Sorted(maps.Keys(field.marks)) {
			if err := target.PipeE(yaml.SetField(key, yaml.NewStringRNode(field.marks[key]))); err != nil {
				return err
			}
		}
	}
	return nil
}

// dropNull removes a field without a value, such as `labels:`, which templates often leave.
func dropNull(node *yaml.RNode, parent, field string) error {
	holder, err := node.Pipe(yaml.Lookup(parent))
	if err != nil || holder.IsNil() {
		return err
	}
	if value := holder.Field(field); value != nil && value.Value.IsTaggedNull() {
		return holder.PipeE(yaml.Clear(field))
	}
	return nil
}
