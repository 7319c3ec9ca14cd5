package tree

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/complete"
	"waybill.dev/waybill/cmd/internal/output"
)

const examples = `  # What the repository of a GitSync became, in every cluster
  waybill tree gitsync/catalog -n waybill-system

  # Who runs WordPress, and how it is doing
  waybill tree wordpress

  # What an Application is made of, and what it needs, down to the Pods
  waybill tree application/wordpress -n blog

  # Where a KubernetesApplication runs, and how its objects there are doing
  waybill tree kubernetesapplication/wordpress-demo -n complex

  # What is installed in a cluster, without what it consists of
  waybill tree cluster/berlin -n waybill-system --depth 1`

// options are the flags of the command.
type options struct {
	env    *cli.Env
	depth  int
	format *output.Format
}

// New returns the command.
func New(env *cli.Env) *cobra.Command {
	o := &options{env: env, format: output.NewFormat()}
	cmd := &cobra.Command{
		Use:   "tree NAME | KIND/NAME | KIND NAME",
		Short: "Show what became of an object, down to the Pods in each cluster, with its health",
		Long: `Show what became of an object, down to the Pods in each cluster, with its health.

A GitSync leads to the objects that it delivers, an ApplicationDefinition to its
installations in all clusters, a KubernetesCluster to what is scheduled to it and installed in
it, a KubernetesApplication to its resources and their objects in the cluster, an
ApplicationInstallation to its objects, an Application to its components and dependencies,
and each of these to what it owns. A NAME alone is looked for among these kinds, in this
order, and in all namespaces unless -n is given.

The components of an Application are those that the selector and the annotation say. What is
listed and missing is shown as such, and so is what names the Application and does not belong
to it.

What an object owns is found by ownerReferences. An object of a custom kind may own objects of
any kind; those of kinds that you may not list are left out, with a warning that names the kinds.`,
		Example:           examples,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: complete.References(env),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	cmd.Flags().IntVar(&o.depth, "depth", 0, "How many levels below the object to show; 0 shows all")
	o.format.AddFlag(cmd)
	return cmd
}

func (o *options) run(ctx context.Context, args []string) error {
	if o.depth < 0 {
		return fmt.Errorf("--depth must be 0 or more")
	}
	target, err := o.env.Target(ctx)
	if err != nil {
		return err
	}
	root, err := find(ctx, o.env, target, args)
	if err != nil {
		return err
	}
	grown, err := Grow(ctx, target, root, o.depth)
	if err != nil {
		return err
	}
	for _, warning := range grown.Warnings {
		o.env.Warnf("%s", warning)
	}
	if o.format.Structured() {
		return o.format.Print(o.env.Out, grown.root)
	}
	return grown.Print(o.env.Out)
}
