package kustomize

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/types"
)

// bytesPerChange is how much text counts as one more change, as it is copied.
const bytesPerChange = 64

// subject is what a change is about, as far as that is known.
type subject struct{ kind, name string }

// work estimates what a build will do, from what it has read so far: kustomize reads everything that
// a change needs before it makes the change. It errs on the high side.
type work struct {
	// objects, changes and variables are how many were read: variables are places that look as if
	// vars belonged there.
	objects, changes, variables int
	// single are the changes of one object each; changes are held against all of them.
	single int
	// sizes are the sizes of objects, of the largest of a kind with no name, and of the largest of
	// all with neither. grown is what changes may add to any object.
	sizes map[subject]int
	grown int
	vars  []subject
	// long is how much long texts the objects of each kind hold, and those of any kind after patches.
	long map[string]int
	// fields are how many fields of all objects configurations and crds name. counted are those files, by
	// the hash of their content.
	fields  int
	counted map[[sha256.Size]byte]bool
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
	w.long[subjectOf(n).kind] += longTexts(n)
}

// longTexts returns how much long texts there are in a value.
func longTexts(n *yaml.Node) int {
	const long = 256
	bytes := 0
	if n.Kind == yaml.ScalarNode && len(n.Value) >= long {
		bytes = len(n.Value)
	}
	for _, child := range n.Content {
		bytes += longTexts(child)
	}
	return bytes
}

// longOf returns how much long texts the objects hold that a selector may select.
func (w *work) longOf(s *types.Selector) int {
	if exact(s.Kind) && !w.retyped {
		return w.long[s.Kind] + w.long[""]
	}
	bytes := 0
	for _, more := range w.long {
		bytes += more
	}
	return bytes
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
	bytes := w.sizes[subject{}]
	if known, ok := w.sizes[subject{kind: s.kind}]; ok && !w.retyped {
		bytes = known
	}
	if known, ok := w.sizes[s]; ok && !w.retyped && !w.renamed {
		bytes = known
	}
	return bytes + w.grown
}

// patch counts a patch; target is nil if each of its documents names the one object that it is for.
func (w *work) patch(content []byte, target *types.Selector, options *types.PatchArgs) {
	if options != nil {
		w.renamed = w.renamed || options.AllowNameChange
		w.retyped = w.retyped || options.AllowKindChange
	}
	for document := range documents(content) {
		w.long[""] += longTexts(document)
		switch {
		case document.Kind == yaml.SequenceNode:
			for _, operation := range document.Content {
				w.operation(operation, target)
			}
		case target == nil:
			w.change(subjectOf(document), size(document))
		default:
			w.selected(size(document), target)
		}
	}
}

// operation counts an operation of a JSON patch.
func (w *work) operation(n *yaml.Node, target *types.Selector) {
	w.selected(size(n), target)
	var does struct{ Op, Path, From string }
	if err := n.Decode(&does); err != nil {
		return // kustomize says what is wrong
	}
	switch does.Op {
	case "test":
		return
	case "copy":
		w.selected(maxCopyBytes, target)
	case "move":
		w.names(does.From)
	}
	w.names(does.Path)
}

// names notes a change of what a JSON pointer leads to, if objects are known by that. What precedes
// its first slash is ignored.
func (w *work) names(pointer string) {
	_, field, _ := strings.Cut(pointer, "/")
	w.renamed = w.renamed || field == "" || field == "metadata" || field == "metadata/name"
	w.retyped = w.retyped || field == "" || field == "kind"
}

// selected counts a change of all the objects that a target selects.
func (w *work) selected(bytes int, target *types.Selector) {
	if target != nil && exact(target.Kind) && exact(target.Name) {
		w.change(subject{target.Kind, target.Name}, bytes)
		return
	}
	w.changes += 1 + bytes/bytesPerChange
	w.grown += bytes
}

// configuration counts the fields in a file of configurations.
func (w *work) configuration(content []byte) {
	fields := 0
	for document := range documents(content) {
		fields += maps(document)
	}
	w.lookFor(content, fields)
}

// lookFor counts the fields of a file. Kustomize keeps each only once.
func (w *work) lookFor(content []byte, fields int) {
	if sum := sha256.Sum256(content); !w.counted[sum] {
		w.counted[sum] = true
		w.fields += fields
	}
}

// change counts a change of one object.
func (w *work) change(s subject, bytes int) {
	w.single += 1 + bytes/bytesPerChange
	w.add(s, bytes)
}

// everywhere counts the fields of a kustomization that change all objects.
//
//nolint:staticcheck // deprecated fields are read as any other
func (w *work) everywhere(k *types.Kustomization) {
	fields := types.Kustomization{
		NamePrefix: k.NamePrefix, NameSuffix: k.NameSuffix, Namespace: k.Namespace, CommonLabels: k.CommonLabels, Labels: k.Labels,
		CommonAnnotations: k.CommonAnnotations, Images: k.Images, ImageTags: k.ImageTags, Replicas: k.Replicas, Vars: k.Vars,
	}
	w.affixed = w.affixed || k.NamePrefix != "" || k.NameSuffix != ""
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
	changes, writes, texts := float64(w.changes), 0, 0.0
	for _, r := range w.all {
		each := 1 + float64(w.sizeOf(r.from))/bytesPerChange
		changes += float64(r.times) * float64(r.fields) * each
		writes += r.fields
		for _, to := range r.targets {
			texts += float64(r.times) * float64(len(to.paths)) * float64(w.longOf(to.to))
		}
	}
	total := changes*float64(max(w.objects, 1)) + float64(w.single)
	// Kustomize parses a text, and writes it again, for every path that leads into it.
	const bytesParsed = 8 // in the time of a change
	total += texts / bytesParsed
	// Kustomize looks for each field in each object, and compares it with all others.
	total += float64(w.fields) * float64(w.objects+w.fields)
	// We compare what each replacement writes with what all of them read, by regular expressions.
	const comparison = 10
	total += comparison * float64(writes) * float64(len(w.all))
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

// maps returns how many maps there are in a value.
func maps(n *yaml.Node) int {
	n = target(n)
	found := 0
	if n.Kind == yaml.MappingNode {
		found++
	}
	for _, child := range n.Content {
		found += maps(child)
	}
	return found
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
