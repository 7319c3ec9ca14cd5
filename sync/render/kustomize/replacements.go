package kustomize

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/utils"
	"sigs.k8s.io/yaml"
)

// maxChain is how often replacements that feed each other may write a value again.
const maxChain = 100

// replacements are those of a build. Each is known once, however often it is read.
type replacements struct {
	all   []*replacement
	known map[string]*replacement
	// renames says that objects may be known by other names or kinds than they are read with.
	renames bool
}

// replacement is one of them.
type replacement struct {
	from subject
	// path is what it reads.
	path string
	// fields is how many fields it writes in an object at most, and times how often it was read.
	fields, times int
	targets       []*types.TargetSelector
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
	one := &replacement{times: 1, targets: spec.Targets}
	if spec.Source != nil {
		one.from = subject{spec.Source.Kind, spec.Source.Name}
		one.path = fieldPath(spec.Source.FieldPath)
	}
	for _, target := range spec.Targets {
		if target == nil {
			continue
		}
		one.fields += max(1, len(target.FieldPaths))
		for _, path := range target.FieldPaths {
			r.renames = r.renames || path == "kind" || path == "metadata"
		}
	}
	r.known[string(key)] = one
	r.all = append(r.all, one)
}

// feeding is what one replacement may write of what another reads.
type feeding struct {
	// fields is how many fields; grows says that more may be there afterwards than was read.
	fields int
	grows  bool
}

// feeds returns what r may write of what other reads, in whatever order they run.
func (r *replacements) feeds(one, other *replacement) feeding {
	var found feeding
	for _, target := range one.targets {
		if other.path == "" || target == nil || target.Select == nil || !r.mayBe(target.Select, other.from) {
			continue
		}
		paths := target.FieldPaths
		if len(paths) == 0 {
			paths = []string{fieldPath("")}
		}
		for _, path := range paths {
			if related(path, other.path) {
				found.fields++
				found.grows = found.grows || path != other.path || target.Options != nil && target.Options.Delimiter != ""
			}
		}
	}
	return found
}

// mayBe reports whether a selector may select an object. Prefixes and suffixes change names.
func (r *replacements) mayBe(s *types.Selector, o subject) bool {
	differ := func(a, b string) bool { return exact(a) && exact(b) }
	switch {
	case r.renames:
		return true
	case differ(s.Kind, o.kind) && s.Kind != o.kind:
		return false
	}
	return !differ(s.Name, o.name) || strings.Contains(s.Name, o.name) || strings.Contains(o.name, s.Name)
}

// chained reports whether replacements feed each other so that a value grows without bound, or by
// too much.
func (r *replacements) chained() bool {
	edges := make([][]feeding, len(r.all))
	for i, one := range r.all {
		edges[i] = make([]feeding, len(r.all))
		for j, other := range r.all {
			edges[i][j] = r.feeds(one, other)
		}
	}
	reach := func(from int) []bool {
		seen, pending := make([]bool, len(r.all)), []int{from}
		for len(pending) > 0 {
			at := pending[len(pending)-1]
			pending = pending[:len(pending)-1]
			for next, e := range edges[at] {
				if e.fields > 0 && !seen[next] {
					seen[next] = true
					pending = append(pending, next)
				}
			}
		}
		return seen
	}
	for i := range r.all {
		into := slices.IndexFunc(edges[i], func(e feeding) bool { return e.grows })
		if into < 0 {
			continue
		}
		back := make(map[int]bool)
		for j, e := range edges[i] {
			if e.grows && (j == i || !back[j] && reach(j)[i]) {
				return true
			}
			back[j] = true
		}
	}
	factors := make([]int, len(r.all))
	for i := range r.all {
		if factor(i, edges, factors) > maxChain {
			return true
		}
	}
	return false
}

// factor returns how often what replacement i reads may have been written into itself before. Known
// ones are kept; -1 stands for one that is being computed, in a circle where nothing grows.
func factor(i int, edges [][]feeding, known []int) int {
	if known[i] != 0 {
		return known[i]
	}
	known[i] = -1
	most, grown := 1, 0
	for j := range edges {
		e := edges[j][i]
		if e.fields == 0 {
			continue
		}
		before := max(1, factor(j, edges, known))
		most = max(most, before)
		if e.grows {
			grown = min(grown+before*e.fields, maxChain+1)
		}
	}
	known[i] = min(most+grown, maxChain+1)
	return known[i]
}

// related reports whether one path leads to the field of the other, or into it.
func related(a, b string) bool {
	one, other := utils.SmarterPathSplitter(a, "."), utils.SmarterPathSplitter(b, ".")
	for i := range min(len(one), len(other)) {
		if one[i] != other[i] && !isWild(one[i]) && !isWild(other[i]) {
			return false
		}
	}
	return true
}

// isWild reports whether a step of a path may be another one that is spelled otherwise.
func isWild(step string) bool {
	return step == "" || strings.ContainsAny(step[:1], "*[-0123456789")
}

func fieldPath(path string) string {
	if path == "" {
		return types.DefaultReplacementFieldPath
	}
	return path
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
