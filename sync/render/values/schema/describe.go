package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"waybill.dev/waybill/sync/excerpt"
)

// What a schema says is shown, as far as it fits into a message.
const (
	maxText    = 200
	maxChoice  = 60
	maxChoices = 10
)

func excerptOf(text string) string { return excerpt.Of(excerpt.Line(text), maxText) }

func quoted(name string) string { return strconv.Quote(excerpt.Of(name, maxChoice)) }

// count returns a number of things.
func count(n int, thing string) string {
	switch {
	case n == 1:
		return "1 " + thing
	case strings.HasSuffix(thing, "y"):
		return strconv.Itoa(n) + " " + strings.TrimSuffix(thing, "y") + "ies"
	}
	return strconv.Itoa(n) + " " + thing + "s"
}

// written returns a number as people write it.
func written(n *big.Rat) string {
	if n.IsInt() {
		return excerpt.Of(n.Num().String(), maxChoice)
	}
	short, _ := n.Float64()
	return strconv.FormatFloat(short, 'g', -1, 64)
}

func describeTypes(types []string, value any) string {
	return fmt.Sprintf("must be %s, not %s", strings.Join(types, " or "), typeOf(value))
}

func describeChoices(choices []any) string {
	var texts []string
	for _, choice := range choices[:min(len(choices), maxChoices)] {
		texts = append(texts, describeChoice(choice))
	}
	if len(texts) == 1 {
		return "must be " + texts[0]
	}
	return "must be one of " + strings.Join(texts, ", ") + excerpt.AndMore(len(choices)-len(texts))
}

func describeChoice(choice any) string {
	switch choice := choice.(type) {
	case map[string]any:
		return "a certain object"
	case []any:
		return "a certain list"
	case string:
		return quoted(choice)
	case json.Number:
		return choice.String()
	}
	if choice == nil {
		return "null"
	}
	return fmt.Sprint(choice)
}

// plain writes names that differ only in how their words are joined alike.
var plain = strings.NewReplacer("-", "", "_", "")

// describeUnknown says that a property must not be there, and which one may have been meant.
func describeUnknown(known map[string]*jsonschema.Schema, name string) string {
	for _, other := range slices.Sorted(maps.Keys(known)) {
		if strings.EqualFold(plain.Replace(other), plain.Replace(name)) {
			return "is not a value of the chart: did you mean " + quoted(other) + "?"
		}
	}
	return "is not a value of the chart"
}

// describeAlternatives says what is wrong by every alternative.
func describeAlternatives(path []string, faults []Fault) string {
	var texts []string
	for _, f := range faults {
		text := f.Message
		if len(f.Path) > len(path) {
			text = strings.Join(f.Path[len(path):], ".") + " " + text
		}
		if !slices.Contains(texts, text) {
			texts = append(texts, excerpt.Of(text, maxText))
		}
	}
	if len(texts) == 0 {
		return "is not allowed"
	}
	return excerpt.Texts(texts, ", or ", 3)
}
