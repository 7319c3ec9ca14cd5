package diff

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/cmd/internal/mask"
)

// around is how many lines before and after a difference are shown.
const around = 3

// text returns an object as YAML; empty for nil.
func text(object *unstructured.Unstructured) string {
	if object == nil {
		return ""
	}
	content, err := yaml.Marshal(tidy(object).Object)
	if err != nil {
		return err.Error() // objects come from JSON, which always converts back to YAML
	}
	return string(content)
}

// unified returns the difference between the two states, with the data of Secrets hidden.
func (c change) unified() string {
	before, after := mask.Pair(c.before, c.after)
	diff, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: slices.Collect(strings.Lines(text(before))), B: slices.Collect(strings.Lines(text(after))),
		FromFile: "live", ToFile: "new", Context: around,
	})
	if err != nil {
		return err.Error() // writing to memory does not fail
	}
	return diff
}

// print prints a change for people; nothing if there is no change.
func (c change) print(w io.Writer) error {
	act := c.action()
	if act == noChange {
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# %s in %s: %s", c.id, c.cluster, act)
	if c.note != "" {
		fmt.Fprintf(&b, ": %s", c.note)
	}
	b.WriteString("\n")
	if act != kept {
		b.WriteString(c.unified())
	}
	out := printers.EscapeTerminal(b.String()) // notes and objects are text from the cluster
	if printers.AllowsColorOutput(w) {
		out = colour(out)
	}
	_, err := io.WriteString(w, out)
	return err
}

// colours of lines, by prefix.
var colours = []struct{ prefix, code string }{
	{"# ", "\x1b[1m"}, {"+", "\x1b[32m"}, {"-", "\x1b[31m"}, {"@@", "\x1b[36m"},
}

func colour(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		code := ""
		for _, c := range colours {
			if code == "" && strings.HasPrefix(line, c.prefix) {
				code = c.code
			}
		}
		if code == "" {
			b.WriteString(line)
			continue
		}
		b.WriteString(code + strings.TrimSuffix(line, "\n") + "\x1b[0m\n")
	}
	return b.String()
}

// result is the machine-readable form of a change.
type result struct {
	Cluster   string `json:"cluster"`
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Action    action `json:"action"`
	Note      string `json:"note,omitempty"`
	Diff      string `json:"diff,omitempty"`
}

func (c change) result() result {
	return result{
		Cluster: c.cluster, Group: c.id.Group, Kind: c.id.Kind, Namespace: c.id.Namespace, Name: c.id.Name,
		Action: c.action(), Note: c.note, Diff: c.unified(),
	}
}
