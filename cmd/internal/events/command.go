package events

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/complete"
	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/cmd/internal/kinds"
	"waybill.dev/waybill/cmd/internal/output"
	"waybill.dev/waybill/cmd/internal/tree"
)

const examples = `  # What happened to an installation, its objects and their Pods
  waybill events installation/web -n team-a --cluster berlin

  # What goes wrong below a GitSync, in all clusters, as it happens
  waybill events gitsync/team-a --types Warning --watch`

// options are the flags of the command.
type options struct {
	env       *cli.Env
	watch     bool
	noHeaders bool
	types     []string
	format    *output.Format
}

// New returns the command.
func New(env *cli.Env) *cobra.Command {
	o := &options{env: env, format: output.NewFormat("wide")}
	cmd := &cobra.Command{
		Use:   "events NAME | KIND/NAME | KIND NAME",
		Short: "Show the events of an object and of what became of it, in all clusters",
		Long: `Show the events of an object, and of everything that "waybill tree" shows below it, in all
clusters, the latest last. The API server of each cluster keeps events for an hour unless it is
configured otherwise.

With --watch, events are printed as they come, also those of objects that are made meanwhile,
until the command is interrupted.

An object is looked for in all namespaces unless -n is given; of a KIND/NAME, the one in the
namespace of the kubeconfig comes first. Several that could be meant are an error that lists them.
Namespaces whose events you may not list are left out with a warning; if there are no others, the
exit code is 2.`,
		Example:           examples,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: complete.References(env),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	flags := cmd.Flags()
	flags.BoolVarP(&o.watch, "watch", "w", false, "Print further events as they come")
	flags.BoolVar(&o.noHeaders, "no-headers", false, "Leave out the names of the columns")
	flags.StringSliceVar(&o.types, "types", nil, "Only events of these types: Normal, Warning")
	// This fails only for flags that do not exist.
	_ = cmd.RegisterFlagCompletionFunc("types", cobra.FixedCompletions([]string{corev1.EventTypeNormal, corev1.EventTypeWarning}, cobra.ShellCompDirectiveNoFileComp))
	o.format.AddFlag(cmd)
	return cmd
}

func (o *options) run(ctx context.Context, args []string) error {
	for _, name := range o.types {
		if name != corev1.EventTypeNormal && name != corev1.EventTypeWarning {
			return fmt.Errorf("--types must be %s or %s, and not %q", corev1.EventTypeNormal, corev1.EventTypeWarning, name)
		}
	}
	target, err := o.env.Target(ctx)
	if err != nil {
		return err
	}
	root, err := kinds.One(ctx, o.env, target, args)
	if err != nil {
		return err
	}
	if o.watch {
		return o.follow(ctx, target, root)
	}
	return o.list(ctx, target, root)
}

// list prints the events that there are.
func (o *options) list(ctx context.Context, target *fleet.Cluster, root *unstructured.Unstructured) error {
	grown, err := o.grow(ctx, target, root)
	if err != nil {
		return err
	}
	entries, gaps, err := List(ctx, grown.Members())
	if err != nil {
		return err
	}
	for _, gap := range gaps {
		o.env.Warnf("events are missing: %s", gap)
	}
	entries = slices.DeleteFunc(entries, func(e Entry) bool { return !o.wants(e) })
	if o.format.Structured() {
		return o.format.Print(o.env.Out, slices.Concat([]Entry{}, entries)) // [] rather than null
	}
	if len(entries) == 0 {
		fmt.Fprintf(o.env.ErrOut, "No events found for %s and what became of it\n", kinds.Describe(root))
		return nil
	}
	table := Table(entries, o.columns(entries))
	return output.PrintTable(o.env.Out, table, output.TableOptions{NoHeaders: o.noHeaders})
}

// grow returns the tree of the object.
func (o *options) grow(ctx context.Context, target *fleet.Cluster, root *unstructured.Unstructured) (*tree.Tree, error) {
	grown, err := tree.Grow(ctx, target, root, 0)
	if err != nil {
		return nil, err
	}
	for _, warning := range grown.Warnings {
		o.env.Warnf("%s", warning)
	}
	return grown, nil
}

// wants reports whether events of that type are shown.
func (o *options) wants(e Entry) bool { return len(o.types) == 0 || slices.Contains(o.types, e.Type) }

// columns returns the columns that are needed to distinguish the objects of the events.
func (o *options) columns(entries []Entry) Columns {
	c := Columns{Wide: o.format.String() == "wide"}
	for _, e := range entries {
		c.Cluster = c.Cluster || e.Cluster != entries[0].Cluster
		c.Namespace = c.Namespace || e.Namespace != entries[0].Namespace
	}
	return c
}
