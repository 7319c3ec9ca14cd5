package health

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/sync/excerpt"
)

// phases are the fields of a status in which many kinds say in a word, or in words, how they are.
var phases = [][]string{{"status", "message"}, {"status", "phase"}, {"status", "state"}, {"status", "health"}}

// why says, in the words of an object, why it has the status that a rule returns.
func (e *Rule) why(object map[string]any, status Status) string {
	if status == Current {
		return "it is as its spec wants it"
	}
	telling := e.Conditions
	if len(telling) == 0 {
		telling = []string{"Ready"}
	}
	if said := wordOf(object, telling); said != "" {
		return excerpt.Of(excerpt.Line(said), maxSaid)
	}
	for _, field := range phases {
		if said, found, err := unstructured.NestedString(object, field...); found && err == nil && said != "" {
			return excerpt.Of(excerpt.Line(fmt.Sprintf("%s is %s", field[1], said)), maxSaid)
		}
	}
	if status == Failed {
		return "it has failed"
	}
	return "its controller has not said yet that it is ready"
}

// wordOf returns what the most telling of some conditions says; empty for nothing. A message says more than
// a reason, and mostly what is not True is what is missing.
func wordOf(object map[string]any, types []string) string {
	message := func(c cond) string { return c.message }
	reason := func(c cond) string { return c.reason }
	for _, word := range []func(cond) string{message, reason} {
		for _, missing := range []bool{true, false} {
			for _, name := range types {
				c, found := condition(object, name)
				if found && word(c) != "" && (c.status != "True" || !missing) {
					return fmt.Sprintf("%s: %s", name, word(c))
				}
			}
		}
	}
	return ""
}
