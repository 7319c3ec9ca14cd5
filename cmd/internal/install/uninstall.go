package install

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/complete"
	"waybill.dev/waybill/cmd/internal/delivered"
)

const uninstallExamples = `  # Uninstall, and wait until everything is gone
  waybill uninstall web -n team-a

  # In a user cluster, without waiting
  waybill uninstall web -n team-a --cluster berlin --no-wait

  # Leave the Helm release as it is, for another tool to manage
  waybill uninstall web -n team-a --orphan`

// uninstallFlags are the flags of the command `uninstall`.
type uninstallFlags struct {
	waiting

	env    *cli.Env
	force  bool
	orphan bool
}

// NewUninstall returns the command `uninstall`.
func NewUninstall(env *cli.Env) *cobra.Command {
	o := &uninstallFlags{env: env}
	cmd := &cobra.Command{
		Use:   "uninstall NAME",
		Short: "Uninstall an application",
		Long: `Uninstall an application: delete its ApplicationInstallation, and wait until that is gone, and with it
everything that it installed. Claims of StatefulSets and other objects that charts keep stay. With --orphan,
or spec.deletionPolicy Orphan, all of it stays, unless the definition forbids that.

An installation that a GitSync delivers is left alone, as its GitSync would create it again: the error
names the file to remove. --force deletes it all the same.

NAME is looked for in all namespaces unless -n is given, that of the kubeconfig first. Interrupting the
command leaves the uninstall alone: it goes on.`,
		Example:           uninstallExamples,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: complete.Names(env, v1alpha1.ApplicationInstallationKind),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	cmd.Flags().BoolVar(&o.force, "force", false, "Also delete an installation that a GitSync delivers, and creates again")
	cmd.Flags().BoolVar(&o.orphan, "orphan", false, "Leave what is installed as it is, for another tool to manage (spec.deletionPolicy)")
	o.addFlags(cmd)
	return cmd
}

func (o *uninstallFlags) run(cmd *cobra.Command, name string) error {
	ctx, cancel := o.env.Context(cmd, o.timeout)
	defer cancel()
	s, err := newSession(ctx, o.env)
	if err != nil {
		return err
	}
	inst, err := s.locate(ctx, name)
	if err != nil {
		return err
	}
	if err := delivered.Check(ctx, s.Place, s.NameOf(inst), inst, o.force); err != nil {
		return err
	}
	if o.orphan {
		if err := s.Orphan(ctx, inst); err != nil {
			return err
		}
	}
	fate := s.Fate(ctx, inst)
	if o.orphan && fate.Unheeded != "" { // it was set before, so that admission lets it be
		return fmt.Errorf("%s: %s: leave out --orphan to uninstall it", s.NameOf(inst), fate.Unheeded)
	}
	if note := cmp.Or(fate.Unheeded, fate.Unknown); note != "" {
		s.Warn("%s: %s", s.NameOf(inst), note)
	}
	if err := s.Delete(ctx, inst); err != nil {
		return err
	}
	if !o.waits() {
		fmt.Fprintf(o.env.Out, "%s is being uninstalled; to follow it: %s\n", s.NameOf(inst), s.again(inst))
		return nil
	}
	return s.followRemoval(ctx, inst, fate)
}
