package install

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/complete"
)

const installExamples = `  # Install the default version of the definition web, and follow it until it is ready
  waybill install web -n team-a

  # Another version, under another name, with values, in a user cluster
  waybill install shop --definition web --version 1.0.0 -f values.yaml --set replicas=3 -n team-a --cluster berlin

  # What would be created
  waybill install web -n team-a --dry-run

  # The manifest, to be committed
  waybill install web -n team-a -o yaml > installations/team-a/web.yaml`

// installFlags are the flags of the command `install`.
type installFlags struct {
	writing
	given
	waiting

	env              *cli.Env
	definition       string
	version          string
	namespace        string
	createNamespace  bool
	account          string
	withRequirements bool
}

// oneName takes one argument. Those who know helm give two.
func oneName(cmd *cobra.Command, args []string) error {
	if len(args) == 2 {
		return fmt.Errorf("one NAME is expected; to install definition %[2]s as %[1]s: waybill install %[1]s --definition %[2]s", args[0], args[1])
	}
	return cobra.ExactArgs(1)(cmd, args)
}

// New returns the command `install`.
func New(env *cli.Env) *cobra.Command {
	o := &installFlags{env: env}
	cmd := &cobra.Command{
		Use:   "install NAME",
		Short: "Install an application of the catalog",
		Long: `Install an application of the catalog: create an ApplicationInstallation, and follow it until it is
ready, step by step.

It is the custom resource alone that is written: waybill-sync does the rest, also after the command
is interrupted. With --no-wait, the command returns at once. Without --version, the definition's
default version is installed. Exit code 1 says that it was written and did not become ready in time.

--dry-run shows what would be created, the objects of the application included; -o yaml prints the
manifest for a commit. Neither writes anything.`,
		Example:           installExamples,
		Args:              oneName,
		ValidArgsFunction: complete.Names(env, v1alpha1.ApplicationDefinitionKind),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.definition, "definition", "", "ApplicationDefinition to install; that called NAME unless given")
	flags.StringVar(&o.version, "version", "", "Version to install; the definition's default unless given")
	flags.StringVar(&o.namespace, "target-namespace", "", "Namespace to install the application into; what the definition says, or that of the installation, unless given")
	flags.BoolVar(&o.createNamespace, "create-namespace", false, "Create the namespace of --target-namespace if there is none")
	flags.StringVar(&o.account, "service-account", "", "ServiceAccount of the namespace to act as")
	flags.BoolVar(&o.withRequirements, "with-requirements", false, "Also install what the definition requires and the cluster has not")
	o.given.addFlags(cmd)
	o.writing.addFlags(cmd)
	o.waiting.addFlags(cmd)
	complete.Flag(cmd, env, "definition", v1alpha1.ApplicationDefinitionKind)
	complete.Flag(cmd, env, "target-namespace", "")
	complete.Versions(cmd, env, func(_ context.Context, _ *complete.Reader, args []string) string {
		if o.definition == "" && len(args) > 0 {
			return args[0]
		}
		return o.definition
	})
	return cmd
}

func (o *installFlags) run(cmd *cobra.Command, name string) error {
	if o.createNamespace && o.namespace == "" {
		return errors.New("--create-namespace is for --target-namespace")
	}
	if err := o.check(); err != nil {
		return err
	}
	ctx, cancel := o.env.Context(cmd, o.timeout)
	defer cancel()
	inst, err := o.wanted(name)
	if err != nil {
		return err
	}
	s, err := newSession(ctx, o.env)
	if err != nil {
		return err
	}
	all, err := o.complete(ctx, s, inst)
	if err != nil {
		return err
	}
	for i, one := range all {
		if i > 0 && o.format.String() == "yaml" {
			fmt.Fprintln(o.env.Out, "---")
		}
		if err := s.create(ctx, &o.writing, one); err != nil {
			return err
		}
	}
	return o.followAll(ctx, s, all)
}

// wanted returns the installation as the flags say.
func (o *installFlags) wanted(name string) (*v1alpha1.ApplicationInstallation, error) {
	namespace, _, err := o.env.Namespace()
	if err != nil {
		return nil, err
	}
	inst := &v1alpha1.ApplicationInstallation{}
	inst.Namespace, inst.Name = namespace, name
	inst.Spec.ApplicationRef = v1alpha1.ApplicationReference{Name: o.definition, Version: o.version}
	if o.definition == "" {
		inst.Spec.ApplicationRef.Name = name
	}
	if o.namespace != "" {
		inst.Spec.Namespace = &v1alpha1.TargetNamespace{Name: o.namespace, Create: o.createNamespace}
	}
	inst.Spec.ServiceAccountName = o.account
	own, err := o.over(nil)
	if err != nil {
		return nil, err
	}
	return inst, SetValues(inst, own)
}

// complete fills in the version, and returns everything that is to be installed, in order.
func (o *installFlags) complete(ctx context.Context, s *session, inst *v1alpha1.ApplicationInstallation) ([]*v1alpha1.ApplicationInstallation, error) {
	definition, err := s.Definition(ctx, inst.Spec.ApplicationRef.Name)
	if apierrors.IsForbidden(err) && !o.withRequirements {
		s.Warn("what the cluster offers is not known, and admission decides: %s", err)
		return []*v1alpha1.ApplicationInstallation{inst}, nil
	}
	if err != nil {
		return nil, err
	}
	version, err := s.Offered(definition, o.version)
	if err != nil {
		return nil, err
	}
	inst.Spec.ApplicationRef.Version = version.Version
	if definition.GetMethod() == v1alpha1.MethodKustomize && o.any() {
		s.Warn("ApplicationDefinition %s has method kustomize, which uses no values", definition.Name)
	}
	if o.withRequirements {
		required, err := s.Requirements(ctx, inst, definition)
		return append(required, inst), err
	}
	if missing := s.Missing(ctx, definition); len(missing) > 0 {
		s.Warn("ApplicationDefinition %s requires %s, which cluster %s has not: --with-requirements installs them as well",
			definition.Name, strings.Join(missing, ", "), s.Target.Name())
	}
	return []*v1alpha1.ApplicationInstallation{inst}, nil
}

// followAll follows what was created, in order, unless nothing was, or the user does not wait.
func (o *installFlags) followAll(ctx context.Context, s *session, all []*v1alpha1.ApplicationInstallation) error {
	for _, inst := range all {
		switch {
		case o.tries():
			continue
		case !o.waits():
			s.inProgress(inst)
		default:
			if err := s.follow(ctx, inst); err != nil {
				return err
			}
		}
	}
	return nil
}
