package install

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/complete"
	"waybill.dev/waybill/cmd/internal/installation"
	"waybill.dev/waybill/cmd/internal/mask"
	"waybill.dev/waybill/cmd/internal/output"
	"waybill.dev/waybill/sync/values"
)

// showing are the flags of the command `values`.
type showing struct {
	env     *cli.Env
	all     bool
	explain bool
	format  *output.Format
}

// NewValues returns the command `values`.
func NewValues(env *cli.Env) *cobra.Command {
	o := &showing{env: env, format: output.NewFormat()}
	cmd := &cobra.Command{
		Use:   "values NAME [--all | --explain]",
		Short: "Show the values of an installation, and where each comes from",
		Long: `Show the values that an ApplicationInstallation sets, as YAML. With --all, all that its chart is rendered
with: those of the chart, of the definition and its version, facts about the cluster, spec.valuesFrom
and the installation's own, as merged. With --explain, one value a line, with the layer that it comes
from.

What comes from a Secret is shown as ***. --all and --explain read the definition in the hub and the
chart from its repository, so that they need a kubeconfig of the hub, and --cluster for a user cluster. Defaults of
subcharts, which their parent does not set, are left out.`,
		Example: `  # What was set
  waybill values web -n team-a

  # Where each value comes from
  waybill values web -n team-a --cluster berlin --explain`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: complete.Names(env, v1alpha1.ApplicationInstallationKind),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	cmd.Flags().BoolVarP(&o.all, "all", "a", false, "All values, as merged")
	cmd.Flags().BoolVar(&o.explain, "explain", false, "All values, with where each comes from")
	o.format.AddFlag(cmd)
	cmd.MarkFlagsMutuallyExclusive("all", "explain")
	return cmd
}

func (o *showing) run(ctx context.Context, name string) error {
	s, err := newSession(ctx, o.env)
	if err != nil {
		return err
	}
	inst, err := s.locate(ctx, name)
	if err != nil {
		return err
	}
	if !o.all && !o.explain {
		return o.own(inst)
	}
	layers, err := s.layers(ctx, inst)
	if err != nil {
		return err
	}
	merged := merge(layers)
	if o.all {
		return o.print(merged.shown())
	}
	return o.printExplained(merged.explained(layers))
}

// own prints what the installation sets itself, a block as it was written.
func (o *showing) own(inst *v1alpha1.ApplicationInstallation) error {
	for _, r := range inst.Spec.ValuesFrom {
		fmt.Fprintf(o.env.ErrOut, "# further values: %s/%s, key %s\n", r.Kind, r.Name, r.GetKey())
	}
	if block := inst.Spec.ValuesBlock; block != "" && !o.format.Structured() {
		fmt.Fprintln(o.env.Out, printers.EscapeTerminal(strings.TrimRight(block, "\n")))
		return nil
	}
	own, err := ownValues(inst)
	if err != nil {
		return err
	}
	return o.print(own)
}

// print prints values as YAML, unless the flag asks for JSON.
func (o *showing) print(all map[string]any) error {
	if !o.format.Structured() {
		_ = o.format.Set("yaml") // which it allows
	}
	return o.format.Print(o.env.Out, all)
}

func (o *showing) printExplained(lines []explained) error {
	if o.format.Structured() {
		return o.format.Print(o.env.Out, lines)
	}
	table := output.NewTable("Name", "Value", "From")
	for _, line := range lines {
		output.AddRow(table, line.Name, line.text(), line.From)
	}
	return output.PrintTable(o.env.Out, table, output.TableOptions{Wide: true})
}

// layers returns the layers of values of an installation, the chart's first.
func (s *session) layers(ctx context.Context, inst *v1alpha1.ApplicationInstallation) ([]values.Layer, error) {
	hub, err := s.env.Hub()
	if err != nil {
		return nil, err
	}
	lookup := &installation.Lookup{
		Hub: hub, Target: s.target, Warn: s.env.Warnf, SystemNamespace: s.env.SystemNamespace,
		Unknown: func(why string) { s.env.Warnf("facts about the cluster are empty: %s", why) },
	}
	resolved, err := lookup.Resolve(ctx, installation.Wish{Installation: inst})
	if err != nil {
		return nil, err
	}
	if resolved.Definition.GetMethod() == v1alpha1.MethodKustomize {
		return nil, errors.New("method kustomize uses no values")
	}
	rest, err := lookup.Layers(ctx, resolved)
	if err != nil {
		return nil, err
	}
	sources, err := installation.OpenSources(nil, false)
	if err != nil {
		return nil, err
	}
	defer func() { _ = sources.Close() }() // a failure to clean up is not worth an error
	chart, err := sources.Defaults(ctx, resolved)
	if err != nil {
		return nil, err
	}
	return append([]values.Layer{chart}, rest...), nil
}

// merged is a value with the layer that it comes from, or a map of such.
type merged struct {
	value  any
	layer  int
	secret bool
	inner  map[string]*merged // nil for what is no map
}

// merge merges layers as Helm does: maps name by name; what is no map replaces what was there.
func merge(layers []values.Layer) *merged {
	all := &merged{inner: map[string]*merged{}}
	for i, layer := range layers {
		all.take(layer.Values, i, layer.Secret)
	}
	return all
}

func (m *merged) take(from map[string]any, layer int, secret bool) {
	if len(from) == 0 && len(m.inner) == 0 {
		m.layer, m.secret = layer, secret
	}
	for name, value := range from {
		inner, isMap := value.(map[string]any)
		if !isMap {
			m.inner[name] = &merged{value: value, layer: layer, secret: secret}
			continue
		}
		if there := m.inner[name]; there == nil || there.inner == nil {
			m.inner[name] = &merged{inner: map[string]*merged{}}
		}
		m.inner[name].take(inner, layer, secret)
	}
}

// shown returns the values as templates see them: a null removes a value of the chart.
func (m *merged) shown() map[string]any {
	all := map[string]any{}
	for name, one := range m.inner {
		switch {
		case one.inner != nil:
			all[name] = one.shown()
		case one.value == nil && one.layer > 0:
		case one.secret:
			all[name] = mask.Hidden
		default:
			all[name] = one.value
		}
	}
	return all
}

// explained is a value with where it comes from.
type explained struct {
	Name  string `json:"name"`
	Value any    `json:"value"`
	From  string `json:"from"`
}

// text returns the value in a line.
func (e explained) text() string {
	switch value := e.Value.(type) {
	case nil:
		return "null"
	case string:
		if value == "" {
			return `""`
		}
		return value
	}
	return jsonOf(e.Value)
}

// explained returns a line for each value, by name.
func (m *merged) explained(layers []values.Layer) []explained {
	lines := []explained{}
	m.each("", func(name string, one *merged) {
		line := explained{Name: name, Value: one.value, From: layers[one.layer].From}
		switch {
		case one.inner != nil:
			line.Value = map[string]any{}
		case one.secret:
			line.Value = mask.Hidden
		}
		lines = append(lines, line)
	})
	return lines
}

// each calls visit for each value that is no map, or an empty one, by name.
func (m *merged) each(prefix string, visit func(string, *merged)) {
	for _, name := range slices.Sorted(maps.Keys(m.inner)) {
		one, full := m.inner[name], name
		if strings.ContainsAny(name, ". ") {
			full = jsonOf(name)
		}
		if prefix != "" {
			full = prefix + "." + full
		}
		if len(one.inner) > 0 {
			one.each(full, visit)
			continue
		}
		visit(full, one)
	}
}
