package kustomize

import (
	"bytes"
	"crypto/sha256"
	"math"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/types"
)

const (
	// bytesPerChange is how much text counts as one more change, as it is copied.
	bytesPerChange = 64
	// bytesOfValue is what a value counts beside its text, and bytesOfWritten what it counts if it is
	// written to many places.
	bytesOfValue, bytesOfWritten = 8, 64
	// fieldsPerChange is how many fields that an object does not have count as one more change.
	fieldsPerChange = 8
)

// subject is what a change is about, as far as that is known.
type subject struct{ kind, name string }

// amount is what was read about a subject.
type amount struct {
	// objects is how many there are, and bytes their size.
	objects, bytes int
	// largest is the size of one, longest that of a list or map in one, and text that of a text in one.
	largest, longest, text int
}

// change is what is done to each object that may be a subject.
type change struct {
	// steps is how many changes there are, and passes how often they take an object apart.
	steps, passes int
	// bytes is what they write.
	bytes int
}

// changes are those of each subject.
type changes map[subject]change

// work estimates what a build will do, from what it has read so far: kustomize reads everything that
// a change needs before it makes the change. It errs on the high side.
type work struct {
	// objects is how many were read.
	objects int
	variables
	// read is what was read of each object, of each kind with no name, and of all with neither.
	read map[subject]amount
	// most is the largest number of objects of a kind that share a name, and affixes how many
	// kustomizations change names.
	most    map[string]int
	affixes int
	// changes are those of all objects that may be a subject, and single those of one of them.
	// everything are those of all known fields of all objects.
	changes, single changes
	everything
	// grown and lengthened are what changes may add to any object, and to a list in it.
	grown, lengthened int
	// long is how much long texts the objects of each kind hold, by how deep they are in them, and
	// those of any kind after patches.
	long map[level]int
	// fields are how many fields of all objects configurations and crds name. properties are those that
	// crds lead to. counted are these files, by the hash of their content.
	fields, properties int
	counted            map[[sha256.Size]byte]bool
	replacements
}

// level is where texts are: in objects of a kind, within that many maps and lists.
type level struct {
	kind  string
	depth int
}

func newWork() work {
	return work{
		read: make(map[subject]amount), most: make(map[string]int), changes: make(changes), single: make(changes),
		variables: variables{named: make(map[string]int), vars: make(map[string]subject)},
		long:      make(map[level]int), counted: make(map[[sha256.Size]byte]bool),
		everything:   everything{longest: make(map[string]int), known: make(map[types.FieldSpec]bool)},
		replacements: replacements{known: make(map[string]*replacement), shallowest: math.MaxInt},
	}
}

// resource counts the objects of a file.
func (w *work) resource(content []byte) {
	for document := range documents(content) {
		w.object(document)
	}
}

// configuration counts the fields in a file of configurations.
func (w *work) configuration(content []byte) {
	if w.isCounted(content) {
		return
	}
	for document := range documents(content) {
		for i := 0; i+1 < len(document.Content); i += 2 {
			fields := maps(document.Content[i+1])
			w.fields += fields
			switch document.Content[i].Value {
			case "nameReference", "varReference":
			case "namePrefix", "nameSuffix", "namespace", "images", "replicas":
				w.filled += fields
			default:
				w.written += fields
			}
		}
	}
}

// isCounted reports whether a file of configurations or crds was counted, and notes it. Kustomize keeps
// each field only once.
func (w *work) isCounted(content []byte) bool {
	sum := sha256.Sum256(content)
	known := w.counted[sum]
	w.counted[sum] = true
	return known
}

// object counts an object, or the items of a list.
func (w *work) object(n *yaml.Node) {
	if items := target(field(target(n), "items")); items != nil && items.Kind == yaml.SequenceNode {
		for _, item := range items.Content {
			w.object(item)
		}
	}
	bytes := size(n, bytesOfValue)
	w.make(subjectOf(n), amount{objects: 1, bytes: bytes, largest: bytes, longest: longest(n), text: longestText(n)})
	w.longTexts(n, level{kind: subjectOf(n).kind}, 1)
	w.variables.within(n)
}

// longTexts counts the long texts in a value; deeper says how much deeper those in it are.
func (w *work) longTexts(n *yaml.Node, at level, deeper int) {
	const long = 256
	n = target(n)
	if n.Kind == yaml.ScalarNode && len(n.Value) >= long {
		w.long[at] += len(n.Value)
	}
	at.depth += deeper
	for _, child := range n.Content {
		w.longTexts(child, at, deeper)
	}
}

// longOf returns how much long texts there are in the objects that a selector may select, in which a
// path may lead on. Replacements may have written them to where they are less deep.
func (w *work) longOf(s *types.Selector, path []string) int {
	bytes := 0
	for at, more := range w.long {
		ofKind := at.kind == s.Kind || at.kind == "" || w.retyped || !exact(s.Kind)
		if ofKind && min(at.depth, w.shallowest) < len(path) {
			bytes += more
		}
	}
	return bytes
}

// make counts an object.
func (w *work) make(s subject, one amount) {
	w.objects++
	for _, wider := range s.wider() {
		w.read[wider] = w.read[wider].with(1, one.bytes, one)
	}
	w.most[s.kind] = max(w.most[s.kind], w.read[s].objects)
}

// add notes that an object has more text, and more items in a list.
func (w *work) add(s subject, text, items int) {
	one := w.read[s]
	one.largest += text
	one.longest += items
	one.text += text
	for _, wider := range s.wider() {
		w.read[wider] = w.read[wider].with(0, text, one)
	}
}

// with returns what an amount is with more objects and bytes, one of which is the given one.
func (a amount) with(objects, bytes int, one amount) amount {
	return amount{
		objects: a.objects + objects, bytes: a.bytes + bytes,
		largest: max(a.largest, one.largest), longest: max(a.longest, one.longest), text: max(a.text, one.text),
	}
}

// wider returns the subjects that an object with a kind and a name belongs to.
func (s subject) wider() []subject {
	switch {
	case s.kind == "":
		return []subject{{}}
	case s.name == "":
		return []subject{s, {}}
	}
	return []subject{s, {kind: s.kind}, {}}
}

// sizeOf returns the most that an object may hold.
func (w *work) sizeOf(s subject) int { return w.largestOf(s).largest + w.grown }

// largestOf returns what is the largest of all that a subject may be. Its name may have changed since
// it was read.
func (w *work) largestOf(s subject) amount {
	known := w.read[subject{}]
	if ofKind, ok := w.read[subject{kind: s.kind}]; ok && !w.retyped {
		known = ofKind
	}
	if same, ok := w.read[s]; ok && !w.retyped && !w.renamed {
		known = same
	}
	return known
}

// amountOf returns what all objects that may be a subject amount to at most.
func (w *work) amountOf(s subject) amount {
	if s.kind == "" || w.retyped {
		return w.read[subject{}]
	}
	all := w.read[subject{kind: s.kind}]
	if s.name != "" && !w.renamed {
		// Changes of names may give the same to objects that had others.
		all.objects = min(w.most[s.kind]*(1+w.affixes), all.objects)
		all.bytes = min(all.objects*w.sizeOf(s), all.bytes)
	}
	return all
}

// patch counts a patch; target is nil if each of its documents names the one object that it is for.
func (w *work) patch(content []byte, target *types.Selector, options *types.PatchArgs) {
	if options != nil {
		w.renamed = w.renamed || options.AllowNameChange
		w.retyped = w.retyped || options.AllowKindChange
	}
	for document := range documents(content) {
		w.longTexts(document, level{}, 0)
		w.variables.within(document)
		if document.Kind == yaml.SequenceNode {
			w.operations(document.Content, target)
			continue
		}
		one := change{steps: 1, passes: 1, bytes: size(document, bytesOfWritten)}
		if target != nil {
			w.selected(one, size(document, bytesOfValue), longest(document), target)
			continue
		}
		s := subjectOf(document)
		w.single.add(s, one)
		w.add(s, size(document, bytesOfValue), longest(document))
	}
}

// operations counts those of a JSON patch, which takes an object apart once.
func (w *work) operations(list []*yaml.Node, target *types.Selector) {
	all, text, items := change{passes: 1}, 0, 0
	copies := false
	for _, n := range list {
		all.steps++
		text += size(n, bytesOfValue)
		items += 1 + longest(n)
		var does struct {
			Op, Path, From string
			Value          yaml.Node
		}
		if err := n.Decode(&does); err != nil {
			does.Op, does.Value = "copy", *n // kustomize may read it otherwise
		}
		if does.Op == "test" {
			continue
		}
		all.bytes += len(does.Path) + size(&does.Value, bytesOfWritten)
		copies = copies || does.Op == "copy"
		if does.Op == "move" {
			w.names(does.From)
		}
		w.names(does.Path)
	}
	if copies {
		all.bytes += maxCopyBytes
		text += maxCopyBytes
		items += maxCopyBytes
	}
	w.selected(all, text, items, target)
}

// names notes a change of what a JSON pointer leads to, if objects are known by that. What precedes
// its first slash is ignored.
func (w *work) names(pointer string) {
	_, field, _ := strings.Cut(pointer, "/")
	w.renamed = w.renamed || field == "" || field == "metadata" || field == "metadata/name"
	w.retyped = w.retyped || field == "" || field == "kind"
}

// selected counts a change of all the objects that a target selects. The text is that of the patch.
func (w *work) selected(c change, text, items int, target *types.Selector) {
	s := selectedBy(target)
	w.changes.add(s, c)
	if s.name != "" {
		w.add(s, text, items)
		return
	}
	w.grown += text
	w.lengthened += items
}

// selectedBy returns what all objects that a selector selects are, as far as it says that exactly.
func selectedBy(s *types.Selector) subject {
	switch {
	case s == nil || !exact(s.Kind):
		return subject{}
	case !exact(s.Name):
		return subject{kind: s.Kind}
	}
	return subject{s.Kind, s.Name}
}

// add counts a change. Subjects are many only in what nobody writes: what is beyond is taken for a
// change of all objects.
func (c changes) add(s subject, one change) {
	const most = 2000
	if _, known := c[s]; !known && len(c) >= most {
		s = subject{}
	}
	sum := c[s]
	c[s] = change{steps: sum.steps + one.steps, passes: sum.passes + one.passes, bytes: sum.bytes + one.bytes}
}

// total returns the number of changes to single objects, and how much they write where a text may be
// written more often than it was read.
func (w *work) total() (changes, growth float64) {
	for s, c := range w.changes {
		all := w.amountOf(s)
		objects := float64(max(all.objects, 1))
		changes += objects*(float64(c.steps)+inChanges(c.bytes)) + float64(c.passes)*inChanges(all.bytes)
		growth += objects * float64(c.bytes)
	}
	objects, fields, written := float64(max(w.objects, 1)), float64(w.fields), float64(1+w.written)
	// Kustomize looks for each field in each object, and compares it with all others.
	changes += fields * (float64(w.objects) + fields)
	changes += objects * (float64(w.everything.steps)*(1+fields/fieldsPerChange) + written*inChanges(w.everything.pairs))
	growth += objects*w.everything.grows() + float64(w.generated)
	for s, c := range w.single {
		changes += float64(c.steps) + inChanges(c.bytes) + float64(c.passes)*inChanges(w.sizeOf(s))
	}
	for _, r := range w.all {
		more, grows := w.replaced(r)
		changes, growth = changes+more, growth+grows
	}
	for name, from := range w.vars {
		grows := float64(w.placesOf(name)) * float64(w.largestOf(from).text+w.grown)
		changes, growth = changes+grows/bytesPerChange, growth+grows
	}
	return changes, growth
}

// comparisons returns how often an object is compared with what a patch is for.
func (w *work) comparisons() int {
	patches := 0
	for _, all := range []changes{w.changes, w.single} {
		for _, c := range all {
			patches += c.passes
		}
	}
	return patches * w.objects
}

// replaced returns what a replacement adds to the total.
func (w *work) replaced(r *replacement) (changes, growth float64) {
	value, comparisons := r.value, 0.0
	if r.reads {
		value = max(value, w.sizeOf(r.from))
	}
	changes = float64(len(r.targets)+1) * float64(w.objects) // each is held against its selectors
	// We compare what each replacement writes with what all of them read, by regular expressions.
	const comparison = 10
	// Kustomize parses a text, and writes it again, for every path that leads into it.
	const bytesParsed = 8 // in the time of a change
	for _, target := range r.targets {
		comparisons += comparison * float64(len(target.paths)) * float64(len(w.all))
		all := w.amountOf(selectedBy(target.to))
		objects, places := float64(max(all.objects, 1)), 0.0
		for _, path := range target.paths {
			places += w.places(path, all)
			changes += float64(w.longOf(target.to, path)) / bytesParsed
		}
		changes += objects * places * (1 + inChanges(value))
		growth += objects * places * float64(value)
	}
	return comparisons + float64(r.times)*changes, float64(r.times) * growth
}

// places returns how many values of one object a path may lead to at most.
func (w *work) places(path []string, in amount) float64 {
	places, most := 1.0, float64(max(in.largest+w.grown, 1))
	for _, step := range path {
		if _, _, selects := selected(step); selects || step == "*" {
			places = min(places*float64(max(in.longest+w.lengthened, 1)), most)
		}
	}
	return places
}

func inChanges(bytes int) float64 { return float64(bytes) / bytesPerChange }

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

// size returns the size of the texts in a value, with each of some bytes more. What aliases stand for
// is bounded.
func size(n *yaml.Node, each int) int {
	n = target(n)
	bytes := len(n.Value) + each
	for _, child := range n.Content {
		bytes += size(child, each)
	}
	return bytes
}

// maps returns how many maps there are in a value.
func maps(n *yaml.Node) int {
	n = target(n)
	found := 0
	if n.Kind == yaml.MappingNode {
		found = 1
	}
	for _, child := range n.Content {
		found += maps(child)
	}
	return found
}

// longest returns how many values the longest list or map in a value holds.
func longest(n *yaml.Node) int {
	n = target(n)
	most := len(n.Content)
	for _, child := range n.Content {
		most = max(most, longest(child))
	}
	return most
}

// longestText returns the size of the longest text in a value.
func longestText(n *yaml.Node) int {
	n = target(n)
	most := len(n.Value)
	for _, child := range n.Content {
		most = max(most, longestText(child))
	}
	return most
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
