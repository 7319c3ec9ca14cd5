package install

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/diff"
	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/cmd/internal/kinds"
	"waybill.dev/waybill/cmd/internal/output"
)

// kind is that of the objects of the package.
var kind = v1alpha1.GroupVersion.WithKind(v1alpha1.ApplicationInstallationKind)

// session is a command at work in one cluster.
type session struct {
	env    *cli.Env
	target *fleet.Cluster
	client client.Client
}

func newSession(ctx context.Context, env *cli.Env) (*session, error) {
	target, err := env.Target(ctx)
	if err != nil {
		return nil, err
	}
	c, err := target.Client()
	if err != nil {
		return nil, err
	}
	return &session{env: env, target: target, client: c}, nil
}

// locate reads the installation that a name means: that in the namespace of the command line, else that
// in the one of the kubeconfig, else the only one of that name.
func (s *session) locate(ctx context.Context, name string) (*v1alpha1.ApplicationInstallation, error) {
	objects, err := kinds.Resolve(ctx, s.env, s.target, []string{v1alpha1.ApplicationInstallationKind + "/" + name})
	if err != nil {
		return nil, err
	}
	inst := &v1alpha1.ApplicationInstallation{}
	if err := s.client.Get(ctx, client.ObjectKeyFromObject(objects[0]), inst); err != nil {
		return nil, fmt.Errorf("get %s: %w", kinds.Describe(objects[0]), s.target.Explain(err))
	}
	return inst, nil
}

// nameOf returns an installation as arguments name it, with its namespace, and its cluster if the
// command line names that.
func (s *session) nameOf(inst *v1alpha1.ApplicationInstallation) string {
	name := fmt.Sprintf("%s/%s in %s", v1alpha1.ApplicationInstallationKind, inst.Name, inst.Namespace)
	if s.env.NamesCluster() {
		name += " of cluster " + s.target.Name()
	}
	return name
}

// there returns the flags that lead to an installation.
func (s *session) there(inst *v1alpha1.ApplicationInstallation) string {
	flags := " -n " + inst.Namespace
	if s.env.NamesCluster() {
		flags += " --cluster " + s.target.Key.String()
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
	options := []client.CreateOption{client.FieldOwner(cli.FieldManager)}
	if w.dryRun {
		options = append(options, client.DryRunAll)
	}
	name := s.nameOf(inst)
	err := s.client.Create(ctx, inst, options...)
	switch {
	case apierrors.IsAlreadyExists(err):
		return fmt.Errorf("%s exists already: waybill upgrade %s%s changes it", name, inst.Name, s.there(inst))
	case lacksNamespace(err):
		return fmt.Errorf("create %s: there is no namespace %s: create it first, or name another one with -n", name, inst.Namespace)
	case err != nil:
		return fmt.Errorf("create %s: %w", name, s.target.Explain(err))
	case w.dryRun:
		return s.diff(ctx, nil, inst)
	}
	fmt.Fprintf(s.env.Out, "%s created\n", name)
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
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	options := []client.PatchOption{client.FieldOwner(cli.FieldManager)}
	if w.dryRun {
		options = append(options, client.DryRunAll)
	}
	current, wanted := before.DeepCopy(), after.DeepCopy()
	for {
		err := s.client.Patch(ctx, wanted, patch, options...)
		if err == nil {
			break
		}
		if !apierrors.IsConflict(err) {
			return false, fmt.Errorf("change %s: %w", s.nameOf(before), s.target.Explain(err))
		}
		if err := s.client.Get(ctx, client.ObjectKeyFromObject(before), current); err != nil {
			return false, fmt.Errorf("get %s: %w", s.nameOf(before), s.target.Explain(err))
		}
		if current.UID != before.UID || current.Generation != before.Generation {
			return false, fmt.Errorf("%s was changed by somebody else meanwhile: nothing was written; run the command again", s.nameOf(before))
		}
		wanted = current.DeepCopy() // its status alone was written
		wanted.Spec = after.Spec
		patch = client.MergeFromWithOptions(current, client.MergeFromWithOptimisticLock{})
	}
	*after = *wanted
	if w.dryRun {
		return true, s.diff(ctx, before, after)
	}
	if after.Generation == before.Generation {
		fmt.Fprintf(s.env.Out, "%s unchanged\n", s.nameOf(before))
		return false, nil
	}
	fmt.Fprintf(s.env.Out, "%s changed\n", s.nameOf(before))
	return true, nil
}

// diff prints what would become of an installation, and of what it installs.
func (s *session) diff(ctx context.Context, before, after *v1alpha1.ApplicationInstallation) error {
	was, err := untyped(before)
	if err != nil {
		return err
	}
	is, err := untyped(after)
	if err != nil {
		return err
	}
	return diff.Installation(ctx, s.env, was, is)
}

// untyped returns an installation without its type; nil for none.
func untyped(inst *v1alpha1.ApplicationInstallation) (*unstructured.Unstructured, error) {
	if inst == nil {
		return nil, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(inst)
	if err != nil {
		return nil, fmt.Errorf("read ApplicationInstallation %s: %w", inst.Name, err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(kind)
	return u, nil
}

// print prints an installation as people would commit it: without a status, and without what the API
// server, GitSyncs and kubectl write into metadata.
func (s *session) print(format *output.Format, inst *v1alpha1.ApplicationInstallation) error {
	clean := &v1alpha1.ApplicationInstallation{Spec: inst.Spec}
	clean.Namespace, clean.Name, clean.Labels, clean.Annotations = inst.Namespace, inst.Name, map[string]string{}, map[string]string{}
	for key, value := range inst.Labels {
		if key != v1alpha1.OwnerHashLabel {
			clean.Labels[key] = value
		}
	}
	for key, value := range inst.Annotations {
		if key != v1alpha1.OwnerAnnotation && key != v1alpha1.ReconcileAtAnnotation && key != lastApplied {
			clean.Annotations[key] = value
		}
	}
	object, err := untyped(clean)
	if err != nil {
		return err
	}
	delete(object.Object, "status")
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	return format.Print(s.env.Out, object.Object)
}

// lastApplied is where `kubectl apply` notes a manifest.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"
