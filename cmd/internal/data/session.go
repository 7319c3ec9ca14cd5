package data

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/cmd/internal/kinds"
	"waybill.dev/waybill/cmd/internal/output"
)

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

// locate reads the object of a kind that a name means: that in the namespace of the command line, else
// that in the one of the kubeconfig, else the only one of that name.
func (s *session) locate(ctx context.Context, kind, name string, into client.Object) error {
	objects, err := kinds.Resolve(ctx, s.env, s.target, []string{kind + "/" + name})
	if err != nil {
		return err
	}
	if err := s.client.Get(ctx, client.ObjectKeyFromObject(objects[0]), into); err != nil {
		return fmt.Errorf("get %s: %w", kinds.Describe(objects[0]), s.target.Explain(err))
	}
	return nil
}

// application returns the StatefulApplication that a name means: the one of that name, else the one of
// the Application of that name. With wrap, it is created if only the Application is there.
func (s *session) application(ctx context.Context, name string, wrap bool) (*v1alpha1.StatefulApplication, error) {
	found := &v1alpha1.StatefulApplication{}
	failed := s.locate(ctx, v1alpha1.StatefulApplicationKind, name, found)
	if failed == nil || apierrors.IsForbidden(failed) {
		return found, failed
	}
	app := &v1alpha1.Application{}
	if s.locate(ctx, v1alpha1.ApplicationKind, name, app) != nil {
		return nil, failed
	}
	list := &v1alpha1.StatefulApplicationList{}
	err := s.client.List(ctx, list, client.InNamespace(app.Namespace))
	if meta.IsNoMatchError(err) {
		return nil, errors.New("the cluster does not serve StatefulApplications: apply charts/waybill/crds there, and run waybill-sync with role data (the agent has it)")
	}
	if err != nil {
		return nil, fmt.Errorf("list the StatefulApplications in %s: %w", app.Namespace, err)
	}
	for i := range list.Items {
		if list.Items[i].GetApplicationName() == name {
			return &list.Items[i], nil
		}
	}
	if !wrap {
		return nil, fmt.Errorf("no StatefulApplication says that Application/%s in %s has data: waybill snapshot %s -n %s --wrap creates one",
			name, app.Namespace, name, app.Namespace)
	}
	wrapper := &v1alpha1.StatefulApplication{
		ObjectMeta: metav1.ObjectMeta{Namespace: app.Namespace, Name: name},
		Spec:       v1alpha1.StatefulApplicationSpec{ApplicationName: name},
	}
	return wrapper, s.create(ctx, wrapper)
}

// create creates an object, and says so.
func (s *session) create(ctx context.Context, object client.Object) error {
	kind, err := s.client.GroupVersionKindFor(object)
	if err != nil {
		return err
	}
	object.GetObjectKind().SetGroupVersionKind(kind)
	if err := s.client.Create(ctx, object, client.FieldOwner(cli.FieldManager)); err != nil {
		return fmt.Errorf("create %s: %w", nameOf(kind.Kind, object), s.target.Explain(err))
	}
	object.GetObjectKind().SetGroupVersionKind(kind) // the answer has none
	fmt.Fprintf(s.env.Out, "%s created\n", nameOf(kind.Kind, object))
	return nil
}

// snapshotClass returns the name of the ApplicationSnapshotClass to use: the one that is given, else the
// default one of the cluster.
func (s *session) snapshotClass(ctx context.Context, given string) (string, error) {
	if given != "" {
		return given, nil
	}
	list := &v1alpha1.ApplicationSnapshotClassList{}
	if err := s.client.List(ctx, list); err != nil {
		return "", fmt.Errorf("look for the default ApplicationSnapshotClass: %w; or name a class with --class", s.target.Explain(err))
	}
	var all, defaults []string
	for i := range list.Items {
		all = append(all, list.Items[i].Name)
		if list.Items[i].Annotations[v1alpha1.DefaultClassAnnotation] == "true" {
			defaults = append(defaults, list.Items[i].Name)
		}
	}
	switch {
	case len(defaults) == 1:
		return defaults[0], nil
	case len(defaults) > 1:
		return "", fmt.Errorf("several ApplicationSnapshotClasses have the annotation %s: choose one with --class: %s",
			v1alpha1.DefaultClassAnnotation, strings.Join(defaults, ", "))
	case len(all) == 0:
		return "", fmt.Errorf("cluster %s has no ApplicationSnapshotClass: an administrator has to create one first", s.target.Name())
	}
	return "", fmt.Errorf("no ApplicationSnapshotClass has the annotation %s: choose one with --class: %s",
		v1alpha1.DefaultClassAnnotation, output.Enumerate(all, "class"))
}

// nameOf returns an object as arguments name it, with its namespace.
func nameOf(kind string, object metav1.Object) string {
	return fmt.Sprintf("%s/%s in %s", kind, object.GetName(), object.GetNamespace())
}

// stamped returns a name for an object that is created for another one now.
func stamped(name string) string {
	return name + "-" + time.Now().UTC().Format("20060102-150405")
}

// print prints an object as people would write it: without a status, and without what the API server
// fills in.
func (s *session) print(format *output.Format, object client.Object) error {
	kind, err := s.client.GroupVersionKindFor(object)
	if err != nil {
		return err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return fmt.Errorf("write the manifest of %s %s: %w", kind.Kind, object.GetName(), err)
	}
	manifest := &unstructured.Unstructured{Object: content}
	manifest.SetGroupVersionKind(kind)
	delete(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	return format.Print(s.env.Out, content)
}

// waiting are the flags that say how long a command follows what it has asked for.
type waiting struct {
	wait    bool
	timeout time.Duration
}

func (w *waiting) addFlags(cmd *cobra.Command, timeout time.Duration) {
	cmd.Flags().BoolVar(&w.wait, "wait", true, "Follow it step by step until it is done")
	cmd.Flags().DurationVar(&w.timeout, "timeout", timeout, "How long to follow it at most; it goes on after that")
}
