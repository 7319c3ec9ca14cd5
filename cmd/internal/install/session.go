package install

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/diff"
	"waybill.dev/waybill/cmd/internal/kinds"
	"waybill.dev/waybill/cmd/internal/output"
)

// kind is that of the objects of the package.
var kind = v1alpha1.GroupVersion.WithKind(v1alpha1.ApplicationInstallationKind)

// session is a command at work in one cluster.
type session struct {
	*Session
	env *cli.Env
}

func newSession(ctx context.Context, env *cli.Env) (*session, error) {
	at, err := env.Place(ctx)
	if err != nil {
		return nil, err
	}
	engine, err := NewSession(at)
	if err != nil {
		return nil, err
	}
	return &session{Session: engine, env: env}, nil
}

// locate reads the installation that NAME or KIND/NAME means: that in the namespace of the command line, else
// that in the one of the kubeconfig, else the only one of that name.
func (s *session) locate(ctx context.Context, name string) (*v1alpha1.ApplicationInstallation, error) {
	key, err := s.resolve(ctx, v1alpha1.ApplicationInstallationKind, name)
	if err != nil {
		return nil, err
	}
	inst := &v1alpha1.ApplicationInstallation{}
	if err := s.client.Get(ctx, key, inst); err != nil {
		return nil, fmt.Errorf("get %s/%s in %s: %w", v1alpha1.ApplicationInstallationKind, key.Name, key.Namespace, s.Target.Explain(err))
	}
	return inst, nil
}

// resolve returns where the object of a kind is that NAME or KIND/NAME means.
func (s *session) resolve(ctx context.Context, of, name string) (client.ObjectKey, error) {
	if !strings.Contains(name, "/") {
		name = of + "/" + name
	}
	objects, err := kinds.Resolve(ctx, s.env, s.Target, []string{name})
	if err != nil {
		return client.ObjectKey{}, err
	}
	if kind := objects[0].GetKind(); kind != of {
		return client.ObjectKey{}, fmt.Errorf("%s is of kind %s: name an object of kind %s", name, kind, of)
	}
	return client.ObjectKeyFromObject(objects[0]), nil
}

// there returns the flags that lead to an installation.
func (s *session) there(inst *v1alpha1.ApplicationInstallation) string {
	flags := " -n " + inst.Namespace
	if s.env.NamesCluster() {
		flags += " --cluster " + s.Target.Key.String()
	}
	return flags
}

// writing is how an installation is written: for good, or only as it would be.
type writing struct {
	dryRun bool
	force  bool
	format *output.Format
}

func (w *writing) addFlags(cmd *cobra.Command) {
	w.format = output.NewFormat()
	w.format.AddFlag(cmd)
	cmd.Flags().Lookup("output").Usage = "Print the manifest for a commit, as json or yaml, and write nothing"
	cmd.Flags().BoolVar(&w.dryRun, "dry-run", false, "Show what would change, in the cluster as well, and write nothing")
}

// tries reports whether nothing is to be written.
func (w *writing) tries() bool { return w.dryRun || w.format.Structured() }

func (w *writing) check() error {
	if w.dryRun && w.format.Structured() {
		return errors.New("--dry-run and -o exclude each other: one shows what would change, the other what to commit")
	}
	return nil
}

// create creates an installation, or does what w says instead.
func (s *session) create(ctx context.Context, w *writing, inst *v1alpha1.ApplicationInstallation) error {
	if w.format.Structured() {
		return s.print(w.format, inst)
	}
	err := s.Create(ctx, inst, w.dryRun)
	switch {
	case apierrors.IsAlreadyExists(err):
		return fmt.Errorf("%s exists already: waybill upgrade %s%s changes it", s.NameOf(inst), inst.Name, s.there(inst))
	case lacksNamespace(err):
		return fmt.Errorf("create %s: there is no namespace %s: create it first, or name another one with -n", s.NameOf(inst), inst.Namespace)
	case err != nil:
		return err
	case w.dryRun:
		return s.diff(ctx, nil, inst)
	}
	fmt.Fprintf(s.env.Out, "%s created\n", s.NameOf(inst))
	return nil
}

// lacksNamespace reports whether an object cannot be created because its namespace does not exist.
func lacksNamespace(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Kind == "namespaces"
}

// change changes an installation, as it was read, or does what w says instead. It reports whether there
// was anything to change.
func (s *session) change(ctx context.Context, w *writing, before, after *v1alpha1.ApplicationInstallation) (bool, error) {
	if w.format.Structured() {
		return true, s.print(w.format, after)
	}
	if err := s.Change(ctx, before, after, w.dryRun); err != nil {
		return false, err
	}
	if w.dryRun {
		return true, s.diff(ctx, before, after)
	}
	if after.Generation == before.Generation {
		fmt.Fprintf(s.env.Out, "%s unchanged\n", s.NameOf(before))
		return false, nil
	}
	fmt.Fprintf(s.env.Out, "%s changed\n", s.NameOf(before))
	return true, nil
}

// diff prints what would become of an installation, and of what it installs.
func (s *session) diff(ctx context.Context, before, after *v1alpha1.ApplicationInstallation) error {
	was, err := Untyped(before)
	if err != nil {
		return err
	}
	is, err := Untyped(after)
	if err != nil {
		return err
	}
	return diff.PrintInstallation(ctx, s.env, s.Place, was, is)
}

// print prints an installation as people would commit it.
func (s *session) print(format *output.Format, inst *v1alpha1.ApplicationInstallation) error {
	content, err := Manifest(inst)
	if err != nil {
		return err
	}
	return format.Print(s.env.Out, content)
}
