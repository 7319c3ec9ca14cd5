package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/complete"
	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/cmd/internal/kinds"
	"waybill.dev/waybill/cmd/internal/output"
)

const examples = `  # Look at the repository now, and wait until all of it is in the clusters
  waybill reconcile gitsync/catalog

  # Compare an installation with its release now, in a user cluster
  waybill reconcile installation/web -n team-a --cluster berlin

  # Only ask
  waybill reconcile gitsync/catalog --wait=false`

// options are the flags of the command.
type options struct {
	env     *cli.Env
	wait    bool
	timeout time.Duration
}

// New returns the command.
func New(env *cli.Env) *cobra.Command {
	o := &options{env: env}
	cmd := &cobra.Command{
		Use:   "reconcile NAME | KIND/NAME... | KIND NAME...",
		Short: "Reconcile an object now, and wait until it is done",
		Long: `Reconcile an object now, rather than when something changes or its interval is over.

Sets the annotation ` + v1alpha1.ReconcileAtAnnotation + ` and waits until
status.lastHandledReconcileAt has its value and the object is Ready. Ends with exit code 1,
and what the object says, when it is handled and not Ready; an object that only waits for
others to become healthy is waited for.

An object is looked for in all namespaces unless -n is given; of a KIND/NAME, the one in the
namespace of the kubeconfig comes first. Several that could be meant are an error that lists them.`,
		Example:           examples,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: complete.References(env),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	cmd.Flags().BoolVar(&o.wait, "wait", true, "Wait until the reconciliation is done")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 5*time.Minute, "How long to wait at most")
	return cmd
}

func (o *options) run(cmd *cobra.Command, args []string) error {
	ctx, cancel := o.env.Context(cmd, o.timeout)
	defer cancel()
	target, err := o.env.Target(ctx)
	if err != nil {
		return err
	}
	objects, err := kinds.Find(ctx, o.env, target, args)
	if err != nil {
		return err
	}
	c, err := target.Client()
	if err != nil {
		return err
	}
	token := NewToken()
	for _, object := range objects {
		if err := Request(ctx, c, object, token); err != nil {
			return err
		}
	}
	if !o.wait {
		for _, object := range objects {
			fmt.Fprintf(o.env.Out, "%s: asked to reconcile\n", kinds.Describe(object))
		}
		return nil
	}
	return o.waitFor(ctx, target, objects, token)
}

// waitFor waits for all objects at once, so that one that takes all the time takes it from none of
// the others, and says what became of each.
func (o *options) waitFor(ctx context.Context, target *fleet.Cluster, objects []*unstructured.Unstructured, token string) error {
	title, several := kinds.Describe(objects[0]), len(objects) > 1
	if several {
		title = output.Count(len(objects), "object")
	}
	progress := output.NewProgress(o.env.ErrOut, title)
	outcomes, errs := make([]outcome, len(objects)), make([]error, len(objects))
	var group errgroup.Group
	for i, object := range objects {
		group.Go(func() error {
			outcomes[i], errs[i] = awaitOutcome(ctx, target, object, token, func(message string) {
				if several {
					message = kinds.Describe(object) + ": " + message
				}
				progress.Update(message)
			})
			return nil
		})
	}
	_ = group.Wait() // the errors are in errs
	progress.Stop()
	var failed []error
	for i, object := range objects {
		if err := o.report(object, outcomes[i], errs[i]); err != nil {
			failed = append(failed, err)
		}
	}
	return worst(failed)
}

// report says what became of an object. It returns ErrNegative if it is not ready, and other errors
// if that is not known.
func (o *options) report(object *unstructured.Unstructured, result outcome, err error) error {
	switch {
	case errors.As(err, new(overdue)):
		fmt.Fprintf(o.env.ErrOut, "%s: %s\n", kinds.Describe(object), printers.EscapeTerminal(err.Error()))
		return cli.ErrNegative
	case err != nil:
		return fmt.Errorf("%s: %w", kinds.Describe(object), err)
	case result.ready:
		fmt.Fprintf(o.env.Out, "%s: %s\n", kinds.Describe(object), result)
		return nil
	}
	fmt.Fprintf(o.env.ErrOut, "%s: %s\n", kinds.Describe(object), result)
	return cli.ErrNegative
}

// worst returns the errors that are still to be reported; without any, that an answer is no.
func worst(failed []error) error {
	untold := slices.DeleteFunc(slices.Clone(failed), func(err error) bool { return errors.Is(err, cli.ErrNegative) })
	if len(untold) == 0 && len(failed) > 0 {
		return cli.ErrNegative
	}
	return errors.Join(untold...)
}

// NewToken returns a token for Request: another one each time.
func NewToken() string { return time.Now().UTC().Format(time.RFC3339Nano) }

// Request sets the annotation that asks for a reconciliation. The object is done when it mirrors the token in
// status.lastHandledReconcileAt.
func Request(ctx context.Context, c client.Client, object *unstructured.Unstructured, token string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"annotations": map[string]string{v1alpha1.ReconcileAtAnnotation: token},
	}})
	if err != nil {
		return fmt.Errorf("write patch: %w", err)
	}
	if err := c.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(cli.FieldManager)); err != nil {
		return fmt.Errorf("annotate %s: %w", kinds.Describe(object), err)
	}
	return nil
}
