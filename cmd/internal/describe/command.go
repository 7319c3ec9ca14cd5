package describe

import (
	"bytes"
	"context"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/complete"
	"waybill.dev/waybill/cmd/internal/events"
	"waybill.dev/waybill/cmd/internal/kinds"
	"waybill.dev/waybill/cmd/internal/tree"
)

const examples = `  # Why a GitSync is not ready
  waybill describe gitsync/team-a

  # What an installation in a user cluster wants, made and reported
  waybill describe installation/web -n team-a --cluster berlin`

// options are the flags of the command.
type options struct {
	env    *cli.Env
	events bool
}

// New returns the command.
func New(env *cli.Env) *cobra.Command {
	o := &options{env: env}
	cmd := &cobra.Command{
		Use:   "describe NAME | KIND/NAME | KIND NAME",
		Short: "Show an object in full: its spec, its conditions, what became of it, and its events",
		Long: `Show one object in full: its spec, its conditions, what became of it, as "waybill tree" shows it,
and the events of the object itself; "waybill events" shows those of what became of it.

The data of Secrets, and of templates of Secrets, is hidden. For programs, there are
"waybill get -o yaml" and "waybill tree -o yaml".

An object is looked for in all namespaces unless -n is given; of a KIND/NAME, the one in the
namespace of the kubeconfig comes first. Several that could be meant are an error that lists them.`,
		Example:           examples,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: complete.References(env),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	cmd.Flags().BoolVar(&o.events, "show-events", true, "Show the events of the object")
	return cmd
}

func (o *options) run(ctx context.Context, args []string) error {
	target, err := o.env.Target(ctx)
	if err != nil {
		return err
	}
	object, err := kinds.One(ctx, o.env, target, args)
	if err != nil {
		return err
	}
	grown, err := tree.Grow(ctx, target, object, 0)
	if err != nil {
		return err
	}
	for _, warning := range grown.Warnings {
		o.env.Warnf("%s", warning)
	}
	var text bytes.Buffer
	d := &description{out: &text, object: object, cluster: target.Name()}
	d.head()
	d.spec()
	if err := d.conditions(); err != nil {
		return err
	}
	if err := d.tree(grown); err != nil {
		return err
	}
	if o.events {
		found, gaps, err := events.List(ctx, grown.Members()[:1]) // the object itself
		if err != nil {
			gaps = append(gaps, err)
		}
		for _, gap := range gaps {
			o.env.Warnf("events are missing: %s", gap)
		}
		if err := d.events(found); err != nil {
			return err
		}
	}
	_, err = o.env.Out.Write(text.Bytes())
	return err
}
