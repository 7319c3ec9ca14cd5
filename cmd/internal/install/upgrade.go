package install

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/complete"
	"waybill.dev/waybill/cmd/internal/delivered"
)

const upgradeExamples = `  # To another version, with the values that are set
  waybill upgrade web -n team-a --version 1.1.0

  # Other values, and nothing else
  waybill upgrade web -n team-a --set replicas=3

  # What that would change in a user cluster
  waybill upgrade web -n team-a --cluster berlin --version 1.1.0 --dry-run`

// upgrading are the flags of the command `upgrade`.
type upgrading struct {
	writing
	given
	waiting

	env     *cli.Env
	version string
	reset   bool
	reuse   bool
}

// NewUpgrade returns the command `upgrade`.
func NewUpgrade(env *cli.Env) *cobra.Command {
	o := &upgrading{env: env}
	cmd := &cobra.Command{
		Use:   "upgrade NAME [--version VERSION] [-f FILE] [--set NAME=VALUE]",
		Short: "Change the version or the values of an installation",
		Long: `Change the version or the values of an ApplicationInstallation, and follow it until it is ready, step
by step. Values that are given lie over those that it sets already, unless --reset-values drops
those. What comes from its definition or from spec.valuesFrom stays.

An installation that a GitSync delivers is left alone, as its GitSync would undo the change: the error
names the file to change. --force changes it all the same, until then.

NAME is looked for in all namespaces unless -n is given, that of the kubeconfig first. Interrupting the
command leaves the upgrade alone: it goes on. Exit code 1 says that it did not become ready.`,
		Example:           upgradeExamples,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: complete.Names(env, v1alpha1.ApplicationInstallationKind),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.version, "version", "", "Version to upgrade to; that of the installation unless given")
	flags.BoolVar(&o.reset, "reset-values", false, "Drop the values that the installation sets")
	flags.BoolVar(&o.reuse, "reuse-values", true, "Keep the values that the installation sets, below those that are given")
	flags.BoolVar(&o.force, "force", false, "Also change an installation that a GitSync delivers, and puts back")
	o.given.addFlags(cmd)
	o.writing.addFlags(cmd)
	o.waiting.addFlags(cmd)
	cmd.MarkFlagsMutuallyExclusive("reset-values", "reuse-values")
	complete.Versions(cmd, env, complete.OfInstallation)
	return cmd
}

func (o *upgrading) run(cmd *cobra.Command, name string) error {
	if o.version == "" && !o.any() && !o.reset && o.reuse {
		return errors.New("nothing to change: give --version, -f, --set or --reset-values")
	}
	if err := o.check(); err != nil {
		return err
	}
	ctx, cancel := o.env.Context(cmd, o.timeout)
	defer cancel()
	s, err := newSession(ctx, o.env)
	if err != nil {
		return err
	}
	before, err := s.locate(ctx, name)
	if err != nil {
		return err
	}
	after := before.DeepCopy()
	if o.version != "" {
		if err := s.SetVersion(ctx, after, o.version); err != nil {
			return err
		}
	}
	if err := o.setValues(s, after); err != nil {
		return err
	}
	if !o.tries() {
		if err := delivered.Check(ctx, s.Place, s.NameOf(before), before, o.force); err != nil {
			return err
		}
	}
	return s.changeAndFollow(ctx, &o.writing, o.waiting, before, after)
}

// setValues sets the values of an installation as the flags say.
func (o *upgrading) setValues(s *session, inst *v1alpha1.ApplicationInstallation) error {
	if !o.any() && !o.reset && o.reuse {
		return nil
	}
	var below map[string]any
	if o.reuse && !o.reset {
		var err error
		if below, err = OwnValues(inst); err != nil {
			return err
		}
	}
	if inst.Spec.ValuesBlock != "" {
		s.Warn("the values of %s are a block with comments: spec.values takes its place, without them", s.NameOf(inst))
	}
	own, err := o.over(below)
	if err != nil {
		return err
	}
	return SetValues(inst, own)
}

// changeAndFollow changes an installation, and follows what comes of it.
func (s *session) changeAndFollow(ctx context.Context, w *writing, wait waiting, before, after *v1alpha1.ApplicationInstallation) error {
	changed, err := s.change(ctx, w, before, after)
	switch {
	case err != nil || w.tries():
		return err
	case !wait.waits() && changed:
		s.inProgress(after)
		return nil
	case !wait.waits():
		return nil
	}
	return s.follow(ctx, after)
}
