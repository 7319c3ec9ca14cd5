package adopt

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/application"
	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/cmd/internal/output"
)

const examples = `  # Look at what carries the label, of every kind, and make an Application of it
  waybill adopt wordpress -n blog --selector app=wordpress

  # Of these kinds only; the Application observes them, and does not own them
  waybill adopt wordpress -n blog -l app=wordpress --kind Deployment.apps,Service --ownership Observe

  # The manifest, for a git repository
  waybill adopt wordpress -n blog -l app=wordpress -o yaml > wordpress.yaml`

// options are the flags of the command.
type options struct {
	env       *cli.Env
	selector  string
	kinds     []string
	appType   string
	version   string
	ownership string
	force     bool
	dryRun    bool
	yes       bool
	format    *output.Format
}

// New returns the command.
func New(env *cli.Env) *cobra.Command {
	o := &options{env: env, format: output.NewFormat()}
	cmd := &cobra.Command{
		Use:   "adopt NAME --selector LABELS [--kind KIND...]",
		Short: "Make an Application of objects that are there",
		Long: `Make an Application of objects that are there.

The objects of the namespace that the selector matches become its components: the Application
is created with a component for each, and each gets the annotation kubernetes.io/application.
Without --kind, objects of every kind are looked at. Those that another object controls, as a
ReplicaSet does its Pods, go with that and are left out, and so are Endpoints, Events and the
like; PersistentVolumeClaims are left out unless their kind is named, so that data is not
deleted with an Application by accident.

What is to be done is shown first, and asked for. An Application of the name that has the same
selector gets the components that it lacks; a selector cannot be changed. Objects that belong to
another Application are refused, unless --force takes them over.`,
		Example: examples,
		Args:    cobra.ExactArgs(1),

		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.selector, "selector", "l", "", "Label selector of the components, e.g. app=wordpress,tier in (web,db); required")
	flags.StringSliceVar(&o.kinds, "kind", nil, "Kind of components, e.g. Deployment.apps; every kind unless given")
	flags.StringVar(&o.appType, "type", "", "Type of the application, e.g. WordPress; its name unless given")
	flags.StringVar(&o.version, "version", "", "Version of the application")
	flags.StringVar(&o.ownership, "ownership", "", "Own: components are deleted with the Application; Observe: they stay. Own unless given")
	flags.BoolVar(&o.force, "force", false, "Take over objects that belong to another Application, or are said to belong to none")
	flags.BoolVar(&o.dryRun, "dry-run", false, "Show what is to be done and have the API server try it, without writing anything")
	flags.BoolVarP(&o.yes, "yes", "y", false, "Do not ask")
	o.format.AddFlag(cmd)
	// This fails only for flags that do not exist.
	_ = cmd.RegisterFlagCompletionFunc("ownership", cobra.FixedCompletions(
		[]string{string(v1alpha1.OwnershipOwn), string(v1alpha1.OwnershipObserve)}, cobra.ShellCompDirectiveNoFileComp))
	cmd.Flag("output").Usage = "Print the manifest of the Application as json or yaml, and write nothing"
	return cmd
}

func (o *options) run(ctx context.Context, name string) error {
	if err := o.check(); err != nil {
		return err
	}
	target, err := o.env.Target(ctx)
	if err != nil {
		return err
	}
	p, err := o.plan(ctx, target, name)
	if err != nil {
		return target.Explain(err)
	}
	if conflicts := p.of(conflict); len(conflicts) > 0 {
		for _, v := range conflicts {
			fmt.Fprintf(o.env.ErrOut, "%s: %s\n", v, v.reason)
		}
		return fmt.Errorf("%s of others: narrow the selection, or take over with --force", output.Count(len(conflicts), "object"))
	}
	if o.format.Structured() {
		return application.Print(o.env.Out, o.format.String() == "json", p.wanted)
	}
	return o.carryOut(ctx, target, p)
}

// check rejects contradictory options before any cluster is asked.
func (o *options) check() error {
	ownership := v1alpha1.Ownership(o.ownership)
	switch {
	case strings.TrimSpace(o.selector) == "":
		return errors.New("--selector is required: it says which objects belong to the Application, now and later")
	case o.ownership != "" && ownership != v1alpha1.OwnershipOwn && ownership != v1alpha1.OwnershipObserve:
		return fmt.Errorf("--ownership must be %s or %s", v1alpha1.OwnershipOwn, v1alpha1.OwnershipObserve)
	case o.format.Structured() && (o.yes || o.dryRun):
		return errors.New("--output prints the manifest and writes nothing: leave out --yes and --dry-run")
	}
	return nil
}

// plan reads the objects in the cluster and returns what to do.
func (o *options) plan(ctx context.Context, target *fleet.Cluster, name string) (*plan, error) {
	selector, err := metav1.ParseToLabelSelector(o.selector)
	if err != nil {
		return nil, fmt.Errorf("read --selector: %w", err)
	}
	r := rules{name: name, named: len(o.kinds) > 0, force: o.force}
	decisions, err := o.decide(ctx, target, r)
	if err != nil {
		return nil, err
	}
	existing, err := o.existing(ctx, target, name)
	if err != nil {
		return nil, err
	}
	wanted := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if wanted.Namespace, _, err = o.env.Namespace(); err != nil {
		return nil, err
	}
	wanted.Spec = v1alpha1.ApplicationSpec{Type: name, Ownership: v1alpha1.OwnershipOwn}
	if existing != nil {
		wanted = existing.DeepCopy()
	}
	wanted.Spec.Selector = selector
	o.describe(&wanted.Spec)
	return newPlan(wanted, existing, r, decisions)
}

// describe sets the fields of the Application that the command line gives.
func (o *options) describe(spec *v1alpha1.ApplicationSpec) {
	if o.appType != "" {
		spec.Type = o.appType
	}
	if o.version != "" {
		spec.Version = o.version
	}
	if o.ownership != "" {
		spec.Ownership = v1alpha1.Ownership(o.ownership)
	}
}

// existing returns the Application of that name; nil if there is none.
func (o *options) existing(ctx context.Context, target *fleet.Cluster, name string) (*v1alpha1.Application, error) {
	c, err := target.Client()
	if err != nil {
		return nil, err
	}
	namespace, _, err := o.env.Namespace()
	if err != nil {
		return nil, err
	}
	app := &v1alpha1.Application{}
	err = c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, app)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get Application %s: %w", name, err)
	}
	return app, nil
}

// carryOut shows the plan, asks for confirmation, and carries it out.
func (o *options) carryOut(ctx context.Context, target *fleet.Cluster, p *plan) error {
	c, err := target.Client()
	if err != nil {
		return err
	}
	if err := p.print(o.env.Out); err != nil {
		return err
	}
	if p.nothing() {
		fmt.Fprintln(o.env.Out, "There is nothing to do.")
		return nil
	}
	if !o.yes && !o.dryRun {
		yes, err := ask(o.env.In, o.env.ErrOut, "Go on?")
		if err != nil {
			return err
		}
		if !yes {
			fmt.Fprintln(o.env.ErrOut, "Nothing is written.")
			return cli.ErrNegative
		}
	}
	return writer{env: o.env, client: c, dryRun: o.dryRun}.write(ctx, p)
}
