package convert

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/application"
	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/output"
)

const examples = `  # What the Applications of all namespaces would be, for a look and a git repository
  waybill import -A > applications.yaml

  # One of them, created in the cluster as well
  waybill import wordpress -n blog --apply

  # Those of a file
  waybill import -f wordpress.yaml`

// options are the flags of the command.
type options struct {
	env           *cli.Env
	files         []string
	allNamespaces bool
	apply         bool
	format        *output.Format

	// others are the objects of other kinds in the files.
	others []source
}

// New returns the command.
func New(env *cli.Env) *cobra.Command {
	o := &options{env: env, format: output.NewFormat()}
	cmd := &cobra.Command{
		Use:   "import [NAME...] | -f FILE...",
		Short: "Convert Applications of app.k8s.io/v1beta1 into Applications of Waybill",
		Long: `Convert Applications of app.k8s.io/v1beta1 into Applications of Waybill, and print them.

They are read from the cluster, those with a NAME or all of the namespace, or from files. Each
of componentKinds becomes a component without a name, which is every selected object of the
kind; the descriptor becomes type, version, description, maintainers and keywords, and its links
url, license and dashboard; addOwnerRef becomes ownership Own, else it is Observe. What could
not be carried over is told for each field, and so are objects whose annotation names an
Application that does not exist.

With --apply they are created in the cluster. One that exists already is left as it is. The old
Applications are left alone: where they own their components, delete them with
--cascade=orphan, so that the components stay.

Ends with exit code 1 when an Application could not be converted or created.`,
		Example: examples,

		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&o.files, "filename", "f", nil, "File or folder with the Applications; - is the standard input")
	flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "Convert the Applications of all namespaces of the cluster")
	flags.BoolVar(&o.apply, "apply", false, "Create the Applications in the cluster instead of printing them")
	o.format.AddFlag(cmd)
	return cmd
}

func (o *options) run(ctx context.Context, args []string) error {
	switch {
	case len(o.files) > 0 && (len(args) > 0 || o.allNamespaces):
		return errors.New("-f excludes names and --all-namespaces: Applications are read from files or from the cluster")
	case len(args) > 0 && o.allNamespaces:
		return errors.New("a name and --all-namespaces exclude each other: name the namespace with -n")
	case o.apply && o.format.String() != "":
		return errors.New("--apply creates the Applications, and prints no manifests: leave out --output")
	}
	found, err := o.find(ctx, args)
	if err != nil {
		return err
	}
	apps, failed := o.convertAll(found)
	if err := o.warnOfStrays(ctx, found, apps); err != nil {
		return err
	}
	if o.apply {
		created, err := o.createAll(ctx, apps)
		if err != nil {
			return err
		}
		failed = failed || !created
	} else if err := application.Print(o.env.Out, o.format.String() == "json", apps...); err != nil {
		return err
	}
	if failed {
		return cli.ErrNegative
	}
	return nil
}

// convertAll converts the Applications that it can, and reports the others.
func (o *options) convertAll(found []source) (apps []*v1alpha1.Application, failed bool) {
	for _, s := range found {
		app, notes, err := convert(s.object)
		for _, note := range notes {
			o.env.Warnf("%s: %s", s, note)
		}
		if err != nil {
			fmt.Fprintln(o.env.ErrOut, printers.EscapeTerminal(fmt.Sprintf("error: %s: %s", s, err)))
			failed = true
			continue
		}
		apps = append(apps, app)
	}
	return apps, failed
}

// createAll creates the Applications, and prints the outcome of each.
func (o *options) createAll(ctx context.Context, apps []*v1alpha1.Application) (all bool, err error) {
	target, err := o.env.Target(ctx)
	if err != nil {
		return false, err
	}
	c, err := target.Client()
	if err != nil {
		return false, err
	}
	namespace, _, err := o.env.Namespace()
	if err != nil {
		return false, err
	}
	all = true
	for _, app := range apps {
		if app.Namespace == "" {
			app.Namespace = namespace
		}
		outcome, err := application.Create(ctx, c, app)
		if err != nil {
			all = false
			fmt.Fprintf(o.env.ErrOut, "error: %s: %s\n", application.Name(client.ObjectKeyFromObject(app)), target.Explain(err))
			continue
		}
		fmt.Fprintf(o.env.Out, "%s %s\n", application.Name(client.ObjectKeyFromObject(app)), outcome)
	}
	return all, nil
}
