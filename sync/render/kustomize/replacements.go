package kustomize

import (
	"cmp"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/utils"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"
)

// maxChain is how often replacements that feed each other may write a value again.
const maxChain = 100

// replacements are those of a build. Each is known once, however often it is read.
type replacements struct {
	all   []*replacement
	known map[string]*replacement
	// shallowest is how many steps the shortest path has that any of them writes.
	shallowest int
	// compares is how many pairs of paths were compared to see whether one leads into the other, and
	// compared how many of all these are about.
	compares, compared int
	naming
	// linked is how many of all are linked with each other, by the names that objects had then.
	linked   int
	linkedBy naming
}

// naming says what else objects may be known by than what they are read with.
type naming struct {
	// affixed: there are prefixes or suffixes; renamed: by any name; retyped: by any kind.
	affixed, renamed, retyped bool
}

// replacement is one of them.
type replacement struct {
	from subject
	// reads says that there is an object that it reads from; value is the size of what it holds itself.
	reads bool
	value int
	// path is what it reads, and delimiter what that is split by.
	path      []string
	delimiter string
	// times is how often it was read.
	times   int
	targets []writing
	// fedBy and feeds are the replacements that may write what it reads, and the other way round.
	fedBy []feeding
	feeds []*replacement
	// copies is how often what it reads may have been written into itself before.
	copies int
	// pieced says that it may write a text of which only parts were read, and compared with how many of
	// all it was compared by then.
	pieced   bool
	compared int
}

// writing is a target of a replacement.
type writing struct {
	to        *types.Selector
	paths     [][]string
	delimiter string
}

// feeding is what one replacement may write of what another reads.
type feeding struct {
	from *replacement
	// fields is how many fields; grows says that more may be there afterwards than was written.
	fields int
	grows  bool
}

// addReplacement adds one, or counts it once more.
func (r *replacements) addReplacement(spec types.Replacement) {
	key, err := json.Marshal(spec)
	if err != nil {
		return // it was decoded from JSON
	}
	if known := r.known[string(key)]; known != nil {
		known.times++
		return
	}
	one := &replacement{times: 1, copies: 1}
	if from := spec.Source; from != nil {
		one.reads, one.from, one.path = true, subject{from.Kind, from.Name}, steps(from.FieldPath)
		one.delimiter = delimiterOf(from.Options)
	}
	if spec.SourceValue != nil {
		one.value = len(*spec.SourceValue)
	}
	for _, target := range spec.Targets {
		if target == nil {
			continue
		}
		paths := target.FieldPaths
		if len(paths) == 0 {
			paths = []string{""}
		}
		to := writing{to: target.Select, delimiter: delimiterOf(target.Options)}
		for _, path := range paths {
			to.paths = append(to.paths, steps(path))
			r.shallowest = min(r.shallowest, len(steps(path)))
			r.retyped = r.retyped || path == "kind"
			r.renamed = r.renamed || path == "metadata"
		}
		if to.to != nil {
			one.targets = append(one.targets, to)
		}
	}
	r.known[string(key)] = one
	r.all = append(r.all, one)
}

// feeds returns what one may write of what other reads, in whatever order they run.
func (r *replacements) feeds(one, other *replacement) feeding {
	found := feeding{from: one}
	for _, target := range one.targets {
		if len(other.path) == 0 || !r.mayBe(target.to, other.from) {
			continue
		}
		for _, path := range target.paths {
			if related(path, other.path) {
				found.fields++
				// A value that is split by what others are joined with is no longer than before.
				joined := target.delimiter != "" && target.delimiter != other.delimiter
				found.grows = found.grows || joined || len(path) > len(other.path)
			}
		}
	}
	return found
}

// mayBe reports whether a selector may select an object.
func (r *replacements) mayBe(s *types.Selector, o subject) bool {
	differ := func(a, b string) bool { return exact(a) && exact(b) && a != b }
	switch {
	case !r.retyped && differ(s.Kind, o.kind):
		return false
	case r.renamed || !differ(s.Name, o.name):
		return true
	}
	return r.affixed && (strings.Contains(s.Name, o.name) || strings.Contains(o.name, s.Name))
}

// chained reports whether replacements feed each other so that a value grows without bound, or by
// too much. It looks at those that were added since it was last asked, or at all if names have
// changed.
func (r *replacements) chained() bool {
	if r.linkedBy != r.naming {
		r.linked, r.linkedBy, r.compared = 0, r.naming, 0
		for _, one := range r.all {
			one.fedBy, one.feeds, one.copies, one.compared = nil, nil, 1, 0
		}
	}
	for ; r.linked < len(r.all); r.linked++ {
		one := r.all[r.linked]
		for _, other := range r.all[:r.linked] {
			r.link(one, other)
			r.link(other, one)
		}
		r.link(one, one)
		if one.spread() {
			return true
		}
	}
	return false
}

func (r *replacements) link(one, other *replacement) {
	if found := r.feeds(one, other); found.fields > 0 {
		other.fedBy = append(other.fedBy, found)
		one.feeds = append(one.feeds, other)
	}
}

// spread counts the copies again in all that r feeds, and what these feed. It reports whether there
// are too many, as there are in every circle in which something grows.
func (r *replacement) spread() bool {
	pending := append([]*replacement{r}, r.feeds...)
	for len(pending) > 0 {
		one := pending[0]
		pending = pending[1:]
		most, grown := 1, 0
		for _, f := range one.fedBy {
			most = max(most, f.from.copies)
			if f.grows {
				grown += f.from.copies * f.fields
			}
		}
		switch copies := most + grown; {
		case copies > maxChain:
			return true
		case copies > one.copies:
			one.copies = copies
			pending = append(pending, one.feeds...)
		}
	}
	return false
}

// related reports whether a path that is written leads to the field that is read, or into it, or to
// what it is in.
func related(written, read []string) bool {
	for i := range min(len(written), len(read)) {
		if !same(written[i], read[i]) {
			return false
		}
	}
	return true
}

// same reports whether two steps of paths may lead to the same value. A written step that selects
// items of a list by a field matches them with a regular expression.
func same(written, read string) bool {
	if written == read || written == "*" || written == "-" || read == "-" {
		return true
	}
	if isIndex(written) && isIndex(read) {
		return false
	}
	field, pattern, ok := selected(written)
	readField, value, readOK := selected(read)
	if !ok || !readOK || field != readField {
		return (ok || isIndex(written)) && (readOK || isIndex(read))
	}
	matches, err := regexp.MatchString(pattern, value)
	return matches || err != nil
}

// selected returns the field and the value of a step such as [name=app].
func selected(step string) (field, value string, ok bool) {
	if !kyaml.IsListIndex(step) {
		return "", "", false
	}
	field, value, err := kyaml.SplitIndexNameValue(step)
	return field, value, err == nil
}

func isIndex(step string) bool {
	_, err := strconv.Atoi(step)
	return err == nil
}

// steps splits a path as kustomize does, so that the same steps are spelled the same.
func steps(path string) []string {
	var out []string
	for _, step := range utils.SmarterPathSplitter(cmp.Or(path, types.DefaultReplacementFieldPath), ".") {
		step = strings.TrimSpace(step)
		if index, err := strconv.Atoi(step); err == nil {
			step = strconv.Itoa(index)
		}
		if step != "" {
			out = append(out, step)
		}
	}
	return out
}

func delimiterOf(o *types.FieldOptions) string {
	if o == nil {
		return ""
	}
	return o.Delimiter
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9-]+$`)

// exact reports whether a part of a selector, which is a regular expression, selects just what it
// says. Dots are not exact, and need not be.
func exact(pattern string) bool { return plainWord.MatchString(pattern) }

// parseReplacements reads a file of one replacement or of a list of them.
func parseReplacements(content []byte) []types.Replacement {
	var list []types.Replacement
	if err := yaml.Unmarshal(content, &list); err == nil {
		return list
	}
	var one types.Replacement
	if err := yaml.Unmarshal(content, &one); err != nil {
		return nil // kustomize says what is wrong
	}
	return []types.Replacement{one}
}
