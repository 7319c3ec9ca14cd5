package clusters

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"waybill.dev/waybill/cmd/internal/cli"
)

// New returns the command.
func New(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Bring a cluster in, or let it go",
		Long: `Bring a cluster in, or let it go.

The clusters that there are, and how they are, are shown by ` + "`waybill get clusters`" + `.

In these commands, --kubeconfig and --context are about the cluster that is brought in or let go:
its administrator's, used here only. The hub is that of $KUBECONFIG, or of --hub-kubeconfig and
--hub-context.`,
		Example: `  waybill cluster add berlin --context berlin --agent
  waybill cluster remove berlin --context berlin`,
	}
	cmd.AddCommand(newAdd(env), newRemove(env))
	return cmd
}

// admin is where the credentials of the administrator of a user cluster are.
type admin struct {
	kubeconfig, context string
}

// addFlags adds the flags that both commands have.
func (a *admin) addFlags(env *cli.Env, flags *pflag.FlagSet) {
	flags.StringVar(&a.kubeconfig, "kubeconfig", "", "Kubeconfig of an administrator of the cluster, used here only; that of the hub if just --context is given")
	flags.StringVar(&a.context, "context", "", "Context of that kubeconfig; its current one unless given")
	env.AddHubFlags(flags)
}

// given reports whether the command line names a kubeconfig of the cluster.
func (a *admin) given() bool { return a.kubeconfig != "" || a.context != "" }
