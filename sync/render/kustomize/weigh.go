package kustomize

import (
	"bytes"
	"encoding/json"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/types"
)

const (
	// bytesPerChange is how much text counts as one more change, as it is copied.
	bytesPerChange = 64
	// changesPerCopy is what a copy operation counts, as it may add maxCopyBytes.
	changesPerCopy = 2000
)

// subject is what a change is about, as far as that is known.
type subject struct{ kind, name string }

// work estimates what a build will do, from what it has read so far: kustomize reads everything that
// a change needs before it makes the change. It errs on the high side.
type work struct {
	// objects, changes and variables are how many were read: variables are places that look as if
	// vars belonged there.
	objects, changes, variables int
	// sizes are the sizes of objects, of the largest of a kind with no name, and of the largest of
	// all with neither. grown is what changes may add to any object.
	sizes map[subject]int
	grown int
	vars  []subject
	replacements
}

// resource counts the objects of a file.
func (w *work) resource(content []byte) {
	w.variables += bytes.Count(content, []byte("$("))
	for document := range documents(content) {
		w.object(document)
	}
}

// object counts an object, or the items of a list.
func (w *work) object(n *yaml.Node) {
	if items := target(field(target(n), "items")); items != nil && items.Kind == yaml.SequenceNode {
		for _, item := range items.Content {
			w.object(item)
		}
	}
	w.objects++
	w.add(subjectOf(n), size(n))
}

// add notes that an object has more text.
func (w *work) add(s subject, bytes int) {
	w.sizes[s] += bytes
	for _, wider := range []subject{{kind: s.kind}, {}} {
		w.sizes[wider] = max(w.sizes[wider], w.sizes[s])
	}
}

// sizeOf returns the most that an object may hold. Its name may have changed since it was read.
func (w *work) sizeOf(s subject) int {
	for _, known := range []subject{s, {kind: s.kind}} {
		if bytes, ok := w.sizes[known]; ok && !w.renames {
			return bytes + w.grown
		}
	}
	return w.sizes[subject{}] + w.grown
}

// patch counts a patch; target is nil if each of its documents names the one object that it is for.
func (w *work) patch(content []byte, target *types.Selector, options *types.PatchArgs) {
	w.renames = w.renames || options != nil && (options.AllowNameChange || options.AllowKindChange)
	for document := range documents(content) {
		switch {
		case document.Kind == yaml.SequenceNode:
			for _, operation := range document.Content {
				w.operation(operation, target)
			}
		case target == nil:
			w.changes++
			w.add(subjectOf(document), size(document))
		default:
			w.broad(size(document), target)
		}
	}
}

// operation counts an operation of a JSON patch.
func (w *work) operation(n *yaml.Node, target *types.Selector) {
	w.broad(size(n), target)
	for _, part := range n.Content {
		switch {
		case part.Value == "copy":
			w.changes += changesPerCopy
			w.grown += maxCopyBytes
		case names(part.Value):
			w.renames = true
		}
	}
}

// names reports whether a JSON pointer may lead to what an object is known by.
func names(pointer string) bool {
	for _, known := range []string{"", "/", "/kind", "/metadata", "/metadata/name"} {
		if pointer == known {
			return true
		}
	}
	return false
}

// broad counts a change of all the objects that a target selects.
func (w *work) broad(bytes int, target *types.Selector) {
	w.changes += 1 + bytes/bytesPerChange
	if target != nil && exact(target.Kind) && exact(target.Name) {
		w.add(subject{target.Kind, target.Name}, bytes)
		return
	}
	w.grown += bytes
}

// everywhere counts the fields of a kustomization that change all objects.
//
//nolint:staticcheck // deprecated fields are read as any other
func (w *work) everywhere(k *types.Kustomization) {
	fields := types.Kustomization{
		NamePrefix: k.NamePrefix, NameSuffix: k.NameSuffix, Namespace: k.Namespace, CommonLabels: k.CommonLabels, Labels: k.Labels,
		CommonAnnotations: k.CommonAnnotations, Images: k.Images, ImageTags: k.ImageTags, Replicas: k.Replicas, Vars: k.Vars,
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return // it was decoded from JSON
	}
	w.changes += len(text) / bytesPerChange
	w.changes += len(fields.Images) + len(fields.ImageTags) + len(fields.Replicas) + len(fields.Vars) + len(fields.Labels)
	for _, v := range fields.Vars {
		w.vars = append(w.vars, subject{v.ObjRef.Kind, v.ObjRef.Name})
	}
}

// total returns the number of changes to single objects.
func (w *work) total() float64 {
	changes := float64(w.changes)
	for _, r := range w.all {
		each := 1 + float64(w.sizeOf(r.from))/bytesPerChange
		changes += float64(r.times) * float64(r.fields) * each
	}
	total := changes * float64(max(w.objects, 1))
	for _, v := range w.vars {
		total += float64(w.variables) * float64(w.sizeOf(v)) / bytesPerChange
	}
	return total
}

// documents returns the documents of a file that can be parsed, up to the first that cannot:
// kustomize says what is wrong with it.
func documents(content []byte) func(func(*yaml.Node) bool) {
	return func(yield func(*yaml.Node) bool) {
		decoder := yaml.NewDecoder(bytes.NewReader(content))
		for {
			var root yaml.Node
			if err := decoder.Decode(&root); err != nil {
				return
			}
			if len(root.Content) == 1 && root.Content[0].ShortTag() != "!!null" && !yield(root.Content[0]) {
				return
			}
		}
	}
}

// size returns the size of the texts in a value; aliases were measured before.
func size(n *yaml.Node) int {
	bytes := len(n.Value) + 8
	for _, child := range n.Content {
		bytes += size(child)
	}
	return bytes
}

func subjectOf(n *yaml.Node) subject {
	return subject{text(field(n, "kind")), text(field(field(n, "metadata"), "name"))}
}

// target returns what an alias stands for.
func target(n *yaml.Node) *yaml.Node {
	if n != nil && n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// field returns the value of a key, or nil.
func field(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// text returns a scalar, or "".
func text(n *yaml.Node) string {
	if n == nil || n.Kind != yaml.ScalarNode {
		return ""
	}
	return n.Value
}
