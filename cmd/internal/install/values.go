package install

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/complete"
	"waybill.dev/waybill/cmd/internal/installation"
	"waybill.dev/waybill/cmd/internal/output"
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
	sources, err := installation.OpenSources(nil, false)
	if err != nil {
		return err
	}
	defer func() { _ = sources.Close() }() // a failure to clean up is not worth an error
	merged, err := s.Values(ctx, sources, inst)
	if err != nil {
		return err
	}
	if o.all {
		return o.print(merged.Shown())
	}
	return o.printExplained(merged.Explained())
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
	own, err := OwnValues(inst)
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

func (o *showing) printExplained(lines []Explained) error {
	if o.format.Structured() {
		return o.format.Print(o.env.Out, lines)
	}
	table := output.NewTable("Name", "Value", "From")
	for _, line := range lines {
		output.AddRow(table, line.Name, line.Text(), line.From)
	}
	return output.PrintTable(o.env.Out, table, output.TableOptions{Wide: true})
}
