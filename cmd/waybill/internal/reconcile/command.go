package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/waybill/internal/cli"
	"waybill.dev/waybill/cmd/waybill/internal/complete"
	"waybill.dev/waybill/cmd/waybill/internal/fleet"
	"waybill.dev/waybill/cmd/waybill/internal/kinds"
	"waybill.dev/waybill/cmd/waybill/internal/output"
)

const examples = `  # Look at the repository now, and wait until all of it is in the clusters
  waybill reconcile gitsync/catalog -n waybill-system

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
		Use:   "reconcile KIND/NAME... | KIND NAME...",
		Short: "Reconcile an object now, and wait until it is done",
		Long: `Reconcile an object now, rather than when something changes or its interval is over.

Sets the annotation ` + v1alpha1.ReconcileAtAnnotation + ` and waits until
status.lastHandledReconcileAt has its value and the object is Ready. Ends with exit code 1,
and what the object says, when it is handled and not Ready; an object that only waits for
others to become healthy is waited for.`,
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
	objects, err := kinds.Resolve(ctx, o.env, target, args)
	if err != nil {
		return err
	}
	c, err := target.Client()
	if err != nil {
		return err
	}
	token := time.Now().UTC().Format(time.RFC3339Nano)
	for _, object := range objects {
		if err := request(ctx, c, object, token); err != nil {
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

// waitFor waits for one object after the other; they are reconciled concurrently.
func (o *options) waitFor(ctx context.Context, target *fleet.Cluster, objects []*unstructured.Unstructured, token string) error {
	var failed error
	for _, object := range objects {
		progress := output.NewProgress(o.env.ErrOut, kinds.Describe(object))
		outcome, err := await(ctx, target, object, token, progress)
		progress.Stop()
		switch {
		case errors.As(err, new(overdue)):
			fmt.Fprintf(o.env.ErrOut, "%s: %s\n", kinds.Describe(object), err)
			failed = cli.ErrNegative
		case err != nil:
			return fmt.Errorf("%s: %w", kinds.Describe(object), err)
		case outcome.ready:
			fmt.Fprintf(o.env.Out, "%s: %s\n", kinds.Describe(object), outcome)
		default:
			fmt.Fprintf(o.env.ErrOut, "%s: %s\n", kinds.Describe(object), outcome)
			failed = cli.ErrNegative
		}
	}
	return failed
}

// request sets the annotation that asks for a reconciliation.
func request(ctx context.Context, c client.Client, object *unstructured.Unstructured, token string) error {
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
