package complete

import (
	"context"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/cli"
)

// Reader reads the cluster that the command line means.
type Reader struct {
	client.Client
	// Namespace of the command line or the kubeconfig.
	Namespace string
}

// Versions completes the flag --version of a command: a version of the definition that definition names
// for the arguments; of none if that is empty.
func Versions(cmd *cobra.Command, env *cli.Env, definition func(ctx context.Context, r *Reader, args []string) string) {
	// This fails only for flags that do not exist.
	_ = cmd.RegisterFlagCompletionFunc("version", func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), within)
		defer cancel()
		return versions(ctx, env, args, definition), cobra.ShellCompDirectiveNoFileComp
	})
}

func versions(ctx context.Context, env *cli.Env, args []string, definition func(context.Context, *Reader, []string) string) []string {
	target, err := env.Target(ctx)
	if err != nil {
		return nil
	}
	c, err := target.Client()
	if err != nil {
		return nil
	}
	namespace, _, err := env.Namespace()
	if err != nil {
		return nil
	}
	found := &v1alpha1.ApplicationDefinition{}
	if c.Get(ctx, client.ObjectKey{Name: definition(ctx, &Reader{Client: c, Namespace: namespace}, args)}, found) != nil {
		return nil
	}
	var names []string
	for _, v := range found.Spec.Versions {
		names = append(names, v.Version)
	}
	return names
}

// OfInstallation returns the definition of the installation that is the first argument.
func OfInstallation(ctx context.Context, r *Reader, args []string) string {
	inst := &v1alpha1.ApplicationInstallation{}
	if len(args) == 0 || r.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: args[0]}, inst) != nil {
		return ""
	}
	return inst.Spec.ApplicationRef.Name
}
