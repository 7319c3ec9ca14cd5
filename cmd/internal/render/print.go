package render

import (
	"fmt"
	"io"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/installation"
	"waybill.dev/waybill/cmd/internal/mask"
	"waybill.dev/waybill/sync/manifest"
)

// hookAnnotation says when Helm runs an object instead of keeping it.
const hookAnnotation = "helm.sh/hook"

// print prints what was rendered, and what could not be used.
func (o *options) print(rendered []*installation.Objects) error {
	var all []manifest.Object
	var problems []manifest.Problem
	for _, r := range rendered {
		for _, warning := range r.Warnings {
			o.env.Warnf("%s", warning)
		}
		all = append(append(append(all, r.CRDs...), r.Objects...), r.Hooks...)
		problems = append(problems, r.Problems...)
	}
	if !o.showSecrets {
		for i := range all {
			all[i].Unstructured = mask.Secret(all[i].Unstructured)
		}
	}
	if err := o.write(all); err != nil {
		return err
	}
	for _, p := range problems {
		fmt.Fprintln(o.env.ErrOut, printers.EscapeTerminal("error: "+p.Error()))
	}
	if len(problems) > 0 {
		return cli.ErrNegative
	}
	return nil
}

func (o *options) write(objects []manifest.Object) error {
	switch o.format.String() {
	case "name":
		for _, object := range objects {
			if _, err := fmt.Fprintln(o.env.Out, oneLine(object.ID().String())); err != nil {
				return err
			}
		}
		return nil
	case "json":
		items := make([]any, len(objects))
		for i, object := range objects {
			items[i] = object.Object
		}
		return o.format.Print(o.env.Out, map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	}
	for _, object := range objects {
		if err := writeYAML(o.env.Out, object); err != nil {
			return err
		}
	}
	return nil
}

// writeYAML writes a document with a comment on where it comes from.
func writeYAML(w io.Writer, object manifest.Object) error {
	content, err := yaml.Marshal(object.Object)
	if err != nil {
		return fmt.Errorf("print %s: %w", object.ID(), err)
	}
	var head strings.Builder
	head.WriteString("---\n")
	if object.File != "" {
		fmt.Fprintf(&head, "# Source: %s\n", oneLine(object.File))
	}
	if hook := object.GetAnnotations()[hookAnnotation]; hook != "" {
		fmt.Fprintf(&head, "# Hook: %s\n", oneLine(hook))
	}
	_, err = io.WriteString(w, head.String()+string(content))
	return err
}

// oneLine escapes text from files and charts: it can neither steer a terminal nor go on outside of
// the comment or the line that it is in.
func oneLine(text string) string {
	return strings.ReplaceAll(printers.EscapeTerminal(text), "\n", `\n`)
}
