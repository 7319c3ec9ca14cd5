// Package suspend implements the commands `suspend` and `resume`.
package suspend

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/complete"
	"waybill.dev/waybill/cmd/internal/kinds"
)

// switches holds, by kind, the field of spec that stops work on an object.
var switches = map[string]string{
	v1alpha1.GitSyncKind:           "suspend",
	v1alpha1.KubernetesClusterKind: "paused",
}

// NewSuspend returns the command `suspend`.
func NewSuspend(env *cli.Env) *cobra.Command {
	return newVerb(env, verb{name: "suspend", done: "suspended", value: true}, &cobra.Command{
		Short: "Stop a GitSync, or everything in a user cluster; what runs keeps running",
		Long: `Stop the work on an object; what runs keeps running.

A GitSync pulls and applies nothing (spec.suspend). In a KubernetesCluster nothing is
installed, upgraded or corrected (spec.paused).

An object is looked for in all namespaces unless -n is given; of a KIND/NAME, the one in the
namespace of the kubeconfig comes first. Several that could be meant are an error that lists them.`,
		Example: `  waybill suspend gitsync/team-a
  waybill suspend cluster/berlin -n waybill-system`,
	})
}

// NewResume returns the command `resume`.
func NewResume(env *cli.Env) *cobra.Command {
	return newVerb(env, verb{name: "resume", done: "resumed", value: false}, &cobra.Command{
		Short: "Go on with what was suspended",
		Long:  "Go on with a GitSync (spec.suspend) or a KubernetesCluster (spec.paused) that was suspended.",
		Example: `  waybill resume gitsync/team-a -n waybill-system
  waybill resume cluster/berlin -n waybill-system`,
	})
}

// verb is one of the two directions.
type verb struct {
	name, done string
	value      bool
}

func newVerb(env *cli.Env, v verb, cmd *cobra.Command) *cobra.Command {
	cmd.Use = v.name + " NAME | KIND/NAME... | KIND NAME..."
	cmd.Args = cobra.MinimumNArgs(1)
	cmd.ValidArgsFunction = complete.References(env, v1alpha1.GitSyncKind, v1alpha1.KubernetesClusterKind)
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return v.run(cmd.Context(), env, args) }
	return cmd
}

func (v verb) run(ctx context.Context, env *cli.Env, args []string) error {
	target, err := env.Target(ctx)
	if err != nil {
		return err
	}
	objects, err := kinds.Find(ctx, env, target, args, v1alpha1.GitSyncKind, v1alpha1.KubernetesClusterKind)
	if err != nil {
		return err
	}
	c, err := target.Client()
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := v.flip(ctx, env, c, object); err != nil {
			return err
		}
	}
	return nil
}

// flip sets the switch of an object, unless it is set already.
func (v verb) flip(ctx context.Context, env *cli.Env, c client.Client, object *unstructured.Unstructured) error {
	field, ok := Field(object.GetKind())
	if !ok {
		return fmt.Errorf("%s cannot be suspended: a %s or a %s can", kinds.Describe(object), v1alpha1.GitSyncKind, v1alpha1.KubernetesClusterKind)
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return fmt.Errorf("get %s: %w", kinds.Describe(object), err)
	}
	if Suspended(object) == v.value {
		fmt.Fprintf(env.Out, "%s is %s already\n", kinds.Describe(object), v.state())
		return nil
	}
	named := Named(object, field)
	if err := Set(ctx, c, object, v.value, false); err != nil {
		return fmt.Errorf("%s %s: %w", v.name, kinds.Describe(object), err)
	}
	fmt.Fprintf(env.Out, "%s %s\n", kinds.Describe(object), v.done)
	if named {
		warnDelivered(env, object)
	}
	return nil
}

// Field returns the field of spec that suspends objects of a kind, and false if there is none.
func Field(kind string) (string, bool) {
	field, ok := switches[kind]
	return field, ok
}

// Suspended reports whether an object is.
func Suspended(object *unstructured.Unstructured) bool {
	now, _, _ := unstructured.NestedBool(object.Object, "spec", switches[object.GetKind()]) // false where it has no such field
	return now
}

// Set suspends an object, or resumes it, and sets it to what the API server has stored, or would store in a dry
// run.
func Set(ctx context.Context, c client.Client, object *unstructured.Unstructured, suspended, dryRun bool) error {
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{switches[object.GetKind()]: suspended}})
	if err != nil {
		return fmt.Errorf("write patch: %w", err)
	}
	options := []client.PatchOption{client.FieldOwner(cli.FieldManager)}
	if dryRun {
		options = append(options, client.DryRunAll)
	}
	return c.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch), options...)
}

func (v verb) state() string {
	if v.value {
		return "suspended"
	}
	return "running"
}

// Named reports whether waybill-sync has applied the field of spec: then the manifest in git names it,
// and a change of it is reverted. A field that the manifest leaves out belongs to the user alone.
func Named(object metav1.Object, field string) bool {
	for _, entry := range object.GetManagedFields() {
		if entry.Manager != v1alpha1.FieldManager || entry.Operation != metav1.ManagedFieldsOperationApply || entry.FieldsV1 == nil {
			continue
		}
		applied := map[string]any{}
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &applied); err != nil {
			return true // better a warning too many
		}
		if _, found, _ := unstructured.NestedFieldNoCopy(applied, "f:spec", "f:"+field); found {
			return true
		}
	}
	return false
}

// warnDelivered warns that a GitSync which delivers the object will revert the change.
func warnDelivered(env *cli.Env, object metav1.Object) {
	if owner := object.GetAnnotations()[v1alpha1.OwnerAnnotation]; owner != "" {
		_, who, _ := strings.Cut(owner, "/")
		env.Warnf("%s is delivered by %s, which puts back what git says: suspend that as well, or commit the change", object.GetName(), who)
	}
}
