package render

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/complete"
	"waybill.dev/waybill/cmd/internal/installation"
	"waybill.dev/waybill/cmd/internal/output"
	"waybill.dev/waybill/sync/render/helm"
)

const examples = `  # An installation from files, without a cluster
  waybill render --offline -f installations/team-a/web.yaml --definition catalog/web.yaml \
    --version 1.1.0 --source https://charts.example.com=charts

  # What a GitSync of this repository would apply, from the files here
  waybill render --offline -f gitsync/team-a.yaml --source https://git.example.com/platform/examples.git=.

  # The same with another version, and values on top
  waybill render -f installations/team-a/web.yaml --definition catalog/web.yaml --version 1.1.0 --values try.yaml

  # An installation that runs in a user cluster, by the hub's catalog
  waybill render installation/web -n team-a --cluster berlin

  # A folder of manifests, a kustomization or a chart
  waybill render --path kustomize/guestbook/overlays/production
  waybill render --path charts/web --name web --values charts/web/values.yaml`

// options are the flags of the command.
type options struct {
	env         *cli.Env
	files       []string
	definitions []string
	path        string
	name        string
	version     string
	values      []string
	copies      []string
	kubeVersion string
	offline     bool
	showSecrets bool
	format      *output.Format
}

// New returns the command.
func New(env *cli.Env) *cobra.Command {
	o := &options{env: env, format: output.NewFormat("name")}
	cmd := &cobra.Command{
		Use:   "render [KIND/NAME] [-f FILE] [--path FOLDER]",
		Short: "Show what an installation, a GitSync or a folder would produce",
		Long: `Show the manifests that an ApplicationInstallation, a GitSync or a folder would produce.

Installations and GitSyncs come from files (-f), together with the definitions, Secrets and
ConfigMaps that they name, or from a cluster (KIND/NAME). What is not among the files is
looked for in the cluster of the kubeconfig, unless --offline is given: definitions and
credentials in the hub, values in the cluster that --cluster names. Nothing is written.

Charts and repositories are fetched, unless --source names local copies of them: URL=FOLDER, with a
clone of the git repository at URL, or with the charts of the Helm repository or registry at URL, a
folder each. With --offline, nothing is fetched, but charts that an earlier run has fetched are used.

Objects of files that name no namespace are in that of -n or the kubeconfig, or in default
where no kubeconfig is read. Facts about the cluster that are not known are empty.

The data of Secrets is hidden unless --show-secrets is given. Ends with exit code 1 when a
manifest could not be used.`,
		Example:           examples,
		Args:              cobra.MaximumNArgs(2),
		ValidArgsFunction: complete.References(env, v1alpha1.ApplicationInstallationKind, v1alpha1.GitSyncKind),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&o.files, "filename", "f", nil, "File or folder with what to render, and with what it refers to; - is the standard input")
	flags.StringArrayVar(&o.definitions, "definition", nil, "File or folder with ApplicationDefinitions")
	flags.StringVar(&o.path, "path", "", "Local folder with manifests, a kustomization or a chart")
	flags.StringVar(&o.name, "name", "release", "Name of the release, for a chart in --path")
	flags.StringVar(&o.version, "version", "", "Version to render instead of the installation's own")
	flags.StringArrayVar(&o.values, "values", nil, "File with values that lie above all others")
	flags.StringArrayVar(&o.copies, "source", nil, "Local folder that stands for a git, Helm or OCI repository: URL=FOLDER")
	flags.StringVar(&o.kubeVersion, "kube-version", "", "Version of Kubernetes that charts see, e.g. v1.33.0 (default "+helm.DefaultKubeVersion+")")
	flags.BoolVar(&o.offline, "offline", false, "Ask no cluster, read no kubeconfig and fetch nothing; fail for what is not among the files")
	flags.BoolVar(&o.showSecrets, "show-secrets", false, "Show the data of Secrets")
	o.format.AddFlag(cmd)
	cmd.MarkFlagsMutuallyExclusive("path", "filename")
	return cmd
}

func (o *options) run(ctx context.Context, args []string) error {
	if err := o.check(args); err != nil {
		return err
	}
	values, err := installation.ReadValues(o.values)
	if err != nil {
		return err
	}
	local, err := installation.ParseLocal(o.copies)
	if err != nil {
		return err
	}
	sources, err := installation.OpenSources(local, o.offline)
	if err != nil {
		return err
	}
	defer func() { _ = sources.Close() }() // a failure to clean up is not worth an error
	j := &job{options: o, sources: sources, local: local, values: values}
	rendered, err := j.render(ctx, args)
	if err != nil {
		return err
	}
	return o.print(rendered)
}

func (o *options) check(args []string) error {
	switch {
	case o.path == "" && len(o.files) == 0 && len(args) == 0:
		return errors.New("nothing to render: name an installation or a GitSync, or give -f FILE or --path FOLDER")
	case len(args) > 0 && (o.path != "" || len(o.files) > 0):
		return errors.New("an object of a cluster excludes -f and --path; give what it refers to with --definition")
	case len(args) > 0 && o.offline:
		return errors.New("an object of a cluster excludes --offline")
	case o.offline && o.env.NamesCluster():
		return errors.New("--offline and --cluster exclude each other")
	case o.path != "" && (o.version != "" || len(o.definitions) > 0):
		return errors.New("--path excludes --version and --definition: it names what is rendered")
	}
	return nil
}
