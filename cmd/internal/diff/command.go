package diff

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/complete"
	"waybill.dev/waybill/cmd/internal/mask"
	"waybill.dev/waybill/cmd/internal/output"
)

const examples = `  # What a working copy would change, before it is pushed
  waybill diff gitsync/team-a -n waybill-system --path installations/team-a

  # What another version of an application would change in a user cluster
  waybill diff installation/web -n team-a --cluster berlin --version 1.1.0

  # How the templates of an application differ from what is in its cluster
  waybill diff kubernetesapplication/wordpress-demo -n complex

  # What a file would change, with the releases of the installations in it
  waybill diff -f installations/team-a/web.yaml --cluster berlin`

// options are the flags of the command.
type options struct {
	env         *cli.Env
	files       []string
	definitions []string
	path        string
	version     string
	values      []string
	format      *output.Format
}

// New returns the command.
func New(env *cli.Env) *cobra.Command {
	o := &options{env: env, format: output.NewFormat()}
	cmd := &cobra.Command{
		Use:   "diff KIND/NAME | -f FILE",
		Short: "Show what a GitSync, an installation, an application or a file would change",
		Long: `Show what would change in clusters, objects of Helm releases included.

For a GitSync, what it would apply to and delete from each of its clusters: from its
repository, or from a local folder (--path). For an ApplicationInstallation, what an install
or upgrade would do: with its own version and values, or with others (--version, --values,
--definition). For a KubernetesApplication, how its templates differ from what is there in the
cluster that it is scheduled to. For files, what applying them would change, and what would
become of the releases of the installations, and of the objects of the KubernetesApplications,
among them.

The API servers are asked by dry runs, so defaults and admission count; nothing is written.
The clusters of a GitSync are asked as the ServiceAccount that delivers, if you may
impersonate it. The data of Secrets is hidden. Ends with exit code 0 when nothing would change and 1 when
something would, as kubectl diff does.`,
		Example: examples,
		Args:    cobra.MaximumNArgs(2),
		ValidArgsFunction: complete.References(env, v1alpha1.GitSyncKind, v1alpha1.ApplicationInstallationKind,
			v1alpha1.KubernetesApplicationKind, v1alpha1.KubernetesApplicationResourceKind),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&o.files, "filename", "f", nil, "File or folder that would be applied; - is the standard input")
	flags.StringArrayVar(&o.definitions, "definition", nil, "File or folder with ApplicationDefinitions to use instead of the hub's")
	flags.StringVar(&o.path, "path", "", "Local folder to take instead of the GitSync's repository")
	flags.StringVar(&o.version, "version", "", "Version to take instead of the installation's own")
	flags.StringArrayVar(&o.values, "values", nil, "File with values that lie above all others")
	o.format.AddFlag(cmd)
	return cmd
}

func (o *options) run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 0 && len(o.files) == 0:
		return errors.New("nothing to compare: name a GitSync, an installation or a KubernetesApplication, or give -f FILE")
	case len(args) > 0 && len(o.files) > 0:
		return errors.New("an object of a cluster excludes -f; give definitions with --definition")
	case len(o.files) > 0 && o.path != "":
		return errors.New("-f and --path exclude each other: --path is for a GitSync of the cluster")
	}
	j, err := newCommandJob(ctx, o)
	if err != nil {
		return err
	}
	defer j.close()
	changes, err := j.changes(ctx, args)
	if err != nil {
		return err
	}
	err = newComparison(changes, j.omitted, mask.Pair).print(o.env, o.format)
	if j.omitted > 0 && (err == nil || errors.Is(err, cli.ErrNegative)) {
		return fmt.Errorf("the comparison is not complete: %d left out", j.omitted)
	}
	return err
}
