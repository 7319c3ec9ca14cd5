package diff

import (
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/output"
)

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

// unified returns the difference between the two states, with what is secret hidden.
func (c change) unified(hide Hide) string {
	before, after := hide(c.before, c.after)
	return Unified("live", text(before), "new", text(after))
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

// print prints a result for people.
func (r Result) print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s in %s: %s", r.id, r.Cluster, r.Action)
	if r.Note != "" {
		fmt.Fprintf(&b, ": %s", r.Note)
	}
	b.WriteString("\n")
	if r.Action != Kept {
		b.WriteString(r.Diff)
	}
	out := printers.EscapeTerminal(b.String()) // notes and objects are text from the cluster
	if printers.AllowsColorOutput(w) {
		out = colour(out)
	}
	_, err := io.WriteString(w, out)
	return err
}

// print prints the results and their number. It returns ErrNegative if something would change.
func (c *Comparison) print(env *cli.Env, format *output.Format) error {
	if format.Structured() {
		if err := format.Print(env.Out, c.Results); err != nil {
			return err
		}
	} else {
		for _, r := range c.Results {
			if err := r.print(env.Out); err != nil {
				return err
			}
		}
	}
	n := c.counts
	fmt.Fprintf(env.ErrOut, "%d created, %d changed, %d deleted, %d refused, %d as they are\n",
		n[Created], n[Changed]+n[Recreated], n[Deleted], n[Refused], n[noChange]+n[Kept])
	if n[Created]+n[Changed]+n[Recreated]+n[Deleted]+n[Refused] > 0 {
		return cli.ErrNegative
	}
	return nil
}
