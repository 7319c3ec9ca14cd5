package validate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/installation"
	"waybill.dev/waybill/cmd/internal/manifests"
	"waybill.dev/waybill/cmd/internal/output"
	"waybill.dev/waybill/sync/manifest"
)

const examples = `  # A repository, before it is pushed
  waybill validate .

  # One file, and one that another program writes
  waybill validate catalog/wordpress.yaml
  kustomize build overlays/production | waybill validate -

  # Values, too, against the charts in this repository
  waybill validate . --source https://charts.example.com=charts`

// options are the flags of the command.
type options struct {
	env    *cli.Env
	strict bool
	charts bool
	copies []string
	format *output.Format
}

// New returns the command.
func New(env *cli.Env) *cobra.Command {
	o := &options{env: env, format: output.NewFormat()}
	cmd := &cobra.Command{
		Use:   "validate FILE|FOLDER|-...",
		Short: "Check manifests by the rules of the API and of the webhook, without a cluster",
		Long: `Check manifests by the rules of the API and of the webhook, without a cluster.

Objects of Waybill's kinds are checked against the schemas of their
CustomResourceDefinitions, unknown fields and CEL rules included, and by the rules of
waybill-webhook, as far as they ask nobody. An installation is checked against its
definition where that is among the files. All files must parse, and no two documents of a
folder, and of the folders in it, may describe one object. Kustomizations are built. A folder
with a Helm chart is left out with a warning: GitSyncs do not apply charts.

With --charts, or for sources that --source names a local copy of, the values of an installation
are also checked against the values.schema.json of the chart, as admission does: what its own
values set must fit; what other layers may still set is left to ` + "`waybill render`" + `.

Each error is printed with its file and line. Ends with exit code 1 when there is one.`,
		Example: examples,
		Args:    cobra.MinimumNArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	cmd.Flags().BoolVar(&o.strict, "strict", false, "Take warnings for errors")
	cmd.Flags().BoolVar(&o.charts, "charts", false, "Fetch the charts of definitions, without credentials, and check values against their schemas")
	cmd.Flags().StringArrayVar(&o.copies, "source", nil, "Local folder that stands for a git, Helm or OCI repository, whose charts values are checked against: URL=FOLDER")
	o.format.AddFlag(cmd)
	return cmd
}

func (o *options) run(ctx context.Context, args []string) error {
	set, err := manifests.Read(args, o.env.In)
	if err != nil {
		return err
	}
	known, done, err := o.openCharts(ctx)
	if err != nil {
		return err
	}
	defer done()
	r, err := inspect(ctx, set, known)
	if err != nil {
		return err
	}
	if err := o.print(r, args); err != nil {
		return err
	}
	if slices.ContainsFunc(r.Findings, func(f finding) bool { return o.strict || f.Severity == severityError }) {
		return cli.ErrNegative
	}
	return nil
}

// openCharts returns what reads the schemas that values are checked against; nil if they are not.
func (o *options) openCharts(ctx context.Context) (schemaOf, func(), error) {
	if !o.charts && len(o.copies) == 0 {
		return nil, func() {}, nil
	}
	local, err := installation.ParseLocal(o.copies)
	if err != nil {
		return nil, nil, err
	}
	sources, err := installation.OpenSources(local, !o.charts)
	if err != nil {
		return nil, nil, err
	}
	done := func() { _ = sources.Close() } // a failure to clean up is not worth an error
	return schemasFrom(ctx, sources), done, nil
}

func (o *options) print(r *report, args []string) error {
	if o.format.Structured() {
		return o.format.Print(o.env.Out, r)
	}
	counts := map[string]int{}
	for _, f := range r.Findings {
		counts[f.Severity]++
		if _, err := fmt.Fprintln(o.env.Out, printers.EscapeTerminal(f.String())); err != nil {
			return err
		}
	}
	if r.Checked+r.Others+len(r.Findings) == 0 {
		o.env.Warnf("there is no manifest in %s", strings.Join(args, ", "))
	}
	fmt.Fprintf(o.env.ErrOut, "%s of Waybill checked, %d of other kinds only parsed: %s, %s\n", output.Count(r.Checked, "object"), r.Others,
		output.Count(counts[severityError], "error"), output.Count(counts[severityWarning], "warning"))
	return nil
}

// String returns the finding in the format of compilers, so that editors find the place.
func (f finding) String() string {
	var b strings.Builder
	if f.File != "" {
		b.WriteString(f.File + ":")
		if f.Line > 0 {
			fmt.Fprintf(&b, "%d:", f.Line)
		}
		b.WriteString(" ")
	}
	if f.Severity == severityWarning {
		b.WriteString("warning: ")
	}
	if f.Kind != "" {
		b.WriteString(manifest.ID{Kind: f.Kind, Namespace: f.Namespace, Name: f.Name}.String() + ": ")
	}
	if f.Field != "" && f.Field != "<nil>" {
		b.WriteString(f.Field + ": ")
	}
	b.WriteString(f.Message)
	return b.String()
}
