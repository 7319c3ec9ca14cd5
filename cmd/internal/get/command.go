package get

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/complete"
	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/cmd/internal/kinds"
)

const examples = `  # What there is, of every kind, in all namespaces
  waybill get -A

  # The catalog, and one entry of it
  waybill get definitions
  waybill get definition wordpress -o yaml

  # The installations of all user clusters of the hub
  waybill get installations --all-clusters

  # The same, and then each change as it happens
  waybill get installations --all-clusters --watch

  # Every MySQL that runs, and how it is doing
  waybill get applications --type mysql -A`

// options are the flags of the command.
type options struct {
	env  *cli.Env
	args []string

	allNamespaces bool
	allClusters   bool
	noHeaders     bool
	watch         bool
	watchEvents   bool
	selector      string
	appType       string
	format        *genericclioptions.PrintFlags
}

// New returns the command.
func New(env *cli.Env) *cobra.Command {
	o := &options{env: env, format: genericclioptions.NewPrintFlags("")}
	cmd := &cobra.Command{
		Use:   "get [KIND[,KIND...] [NAME...] | KIND/NAME...]",
		Short: "List objects of Waybill's kinds, in one cluster or in all",

		SuggestFor: []string{"list", "ls", "status"}, // as Helm calls it
		Long: `List objects of Waybill's kinds; without a kind, those of all kinds that you may list.

With --all-clusters, the hub and every user cluster that its KubernetesClusters name are
asked. One that does not answer is reported and does not keep the others from being shown.

With --watch, the objects of a kind are listed, and each that changes is printed again until the
command is interrupted.`,
		Example:           examples,
		ValidArgsFunction: complete.References(env),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.args = args
			return o.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "List objects of all namespaces")
	flags.BoolVar(&o.allClusters, "all-clusters", false, "Ask the hub and all of its user clusters, in all namespaces unless -n is given")
	flags.BoolVar(&o.noHeaders, "no-headers", false, "Leave out the names of the columns")
	flags.StringVarP(&o.selector, "selector", "l", "", "Label selector, e.g. team=a,environment in (production)")
	flags.StringVar(&o.appType, "type", "", "Only Applications of this spec.type, e.g. mysql; without a KIND, applications are listed")
	flags.BoolVarP(&o.watch, "watch", "w", false, "After listing the objects of a kind, print each that changes")
	flags.BoolVar(&o.watchEvents, "output-watch-events", false, "With --watch, say in a column what happened: ADDED, MODIFIED, DELETED")
	o.format.AddFlags(cmd)
	output := cmd.Flag("output")
	output.Usage = "Format of the output: wide, json, yaml, name, jsonpath=..., go-template=..."
	return cmd
}

// query is the question to every cluster.
type query struct {
	refs      []kinds.Reference
	namespace string // empty for all
	selector  string
	fields    string // a field selector
	every     bool   // whether no kind was named
}

// anywhere reports whether an object of that name is looked for in all namespaces.
func (q query) anywhere(ref kinds.Reference) bool {
	return ref.Name != "" && ref.Kind.Namespaced && q.namespace == ""
}

func (o *options) run(ctx context.Context) error {
	if _, err := labels.Parse(o.selector); err != nil {
		return fmt.Errorf("read --selector: %w", err)
	}
	target, err := o.env.Target(ctx)
	if err != nil {
		return err
	}
	set, err := kinds.Discover(ctx, target)
	if err != nil {
		return err
	}
	if len(set) == 0 {
		return kinds.ErrNotInstalled(target)
	}
	q, err := o.query(set)
	if err != nil {
		return err
	}
	clusters := []*fleet.Cluster{target}
	if o.allClusters {
		if clusters, err = target.UserClusters(ctx); err != nil {
			return err
		}
	}
	switch {
	case o.watch:
		return o.follow(ctx, clusters, q)
	case o.tables():
		return o.printTables(ctx, clusters, q)
	}
	return o.printObjects(ctx, clusters, q)
}

// tables reports whether tables are printed, rather than objects.
func (o *options) tables() bool {
	return *o.format.OutputFormat == "" || *o.format.OutputFormat == "wide"
}

func (o *options) query(set kinds.Set) (query, error) {
	q := query{selector: o.selector}
	var err error
	if q.refs, err = set.Parse(o.args); err != nil {
		return q, err
	}
	if q.every = len(o.args) == 0; q.every {
		for _, k := range o.everyKind(set) {
			q.refs = append(q.refs, kinds.Reference{Kind: k})
		}
	}
	namespace, explicit, err := o.env.Namespace()
	if err != nil {
		return q, err
	}
	if !o.allNamespaces && (explicit || !o.allClusters) {
		q.namespace = namespace
	}
	if o.appType != "" {
		q.fields = fields.OneTermEqualSelector("spec.type", o.appType).String()
	}
	return q, o.contradiction(q)
}

// everyKind returns the kinds that are listed if none is named.
func (o *options) everyKind(set kinds.Set) kinds.Set {
	if o.appType != "" {
		return set.Only(v1alpha1.ApplicationKind)
	}
	return set
}

// contradiction returns why the flags do not fit the query.
func (o *options) contradiction(q query) error {
	named := len(q.refs) > 0 && q.refs[0].Name != ""
	switch {
	case named && o.selector != "":
		return fmt.Errorf("a name and --selector exclude each other")
	case named && o.appType != "":
		return fmt.Errorf("a name and --type exclude each other")
	case o.watchEvents && !o.watch:
		return fmt.Errorf("--output-watch-events is for --watch")
	case named && o.allNamespaces && q.refs[0].Kind.Namespaced:
		return fmt.Errorf("a name and --all-namespaces exclude each other: name the namespace with -n")
	}
	for _, ref := range q.refs {
		if o.appType != "" && ref.Kind.Kind != v1alpha1.ApplicationKind {
			return fmt.Errorf("--type selects applications, and not %s", ref.Kind.Resource)
		}
	}
	return nil
}

// patience is how long all user clusters together may take, in addition to their own limits.
const patience = time.Minute
