package schema

import (
	"regexp"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Bounds of the regular expressions of one chart, by what they are compiled to.
const (
	maxPatterns     = 250_000
	maxPatternBytes = 4096
)

// patterns compiles the regular expressions of one chart, each once.
type patterns struct {
	weight int
	known  map[string]*pattern
}

// pattern is a regular expression.
type pattern struct {
	text string
	// compiled is nil for one that is too costly.
	compiled *regexp.Regexp
	// weight of what it is compiled to.
	weight int
}

// String returns the text of the expression.
func (p *pattern) String() string { return p.text }

// MatchString implements jsonschema.Regexp. Callers ask compiled instead, which may be nil.
func (p *pattern) MatchString(s string) bool { return p.compiled == nil || p.compiled.MatchString(s) }

// cost estimates how long it takes to match a text, in microseconds: it grows with both.
func (p *pattern) cost(text string) int {
	return 1 + int(min(int64(len(text))*int64(p.weight)/200, maxSteps))
}

// repetitions finds how often parts of an expression are repeated.
var repetitions = regexp.MustCompile(`\{([0-9]{1,4})(?:,([0-9]{0,4}))?\}`)

// maxRepetition is Go's own limit, of nested repetitions together.
const maxRepetition = 1000

// weigh estimates, rather too high, how large an expression gets when its repetitions are written out.
func weigh(text string) int {
	times := 1
	for _, found := range repetitions.FindAllStringSubmatch(text, -1) {
		for _, number := range found[1:] {
			if n, err := strconv.Atoi(number); err == nil && n > 1 {
				times = min(times*n, maxRepetition)
			}
		}
	}
	return len(text) * times
}

// compile implements jsonschema.RegexpEngine. It is unknown what expressions beyond the bounds match.
func (p *patterns) compile(text string) (jsonschema.Regexp, error) {
	if found := p.known[text]; found != nil {
		return found, nil
	}
	made := &pattern{text: text, weight: weigh(text)}
	if len(text) <= maxPatternBytes && p.weight+made.weight <= maxPatterns {
		compiled, err := regexp.Compile(text)
		if err != nil {
			return nil, err
		}
		made.compiled = compiled
		p.weight += made.weight
	}
	if p.known == nil {
		p.known = map[string]*pattern{}
	}
	p.known[text] = made
	return made, nil
}
