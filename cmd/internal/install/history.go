package install

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/complete"
	"waybill.dev/waybill/cmd/internal/output"
)

// NewHistory returns the command `history`.
func NewHistory(env *cli.Env) *cobra.Command {
	format := output.NewFormat("wide")
	cmd := &cobra.Command{
		Use:   "history NAME",
		Short: "Show how the installs, upgrades and rollbacks of an installation ended",
		Long: `Show how the installs, upgrades and rollbacks of an ApplicationInstallation ended, newest first, from
its status: the last ten. ` + "`waybill rollback installation/NAME --to-revision REVISION`" + ` goes back to one
that was deployed.

NAME is looked for in all namespaces unless -n is given, that of the kubeconfig first.`,
		Example: `  # What happened to an installation
  waybill history web -n team-a --cluster berlin`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: complete.Names(env, v1alpha1.ApplicationInstallationKind),
		RunE: func(cmd *cobra.Command, args []string) error {
			return showHistory(cmd.Context(), env, format, args[0])
		},
	}
	format.AddFlag(cmd)
	return cmd
}

func showHistory(ctx context.Context, env *cli.Env, format *output.Format, name string) error {
	s, err := newSession(ctx, env)
	if err != nil {
		return err
	}
	inst, err := s.locate(ctx, name)
	if err != nil {
		return err
	}
	history := inst.Status.History
	if format.Structured() {
		if history == nil {
			history = []v1alpha1.InstallationRecord{}
		}
		return format.Print(env.Out, history)
	}
	if len(history) == 0 {
		fmt.Fprintf(env.ErrOut, "%s has no history yet\n", s.NameOf(inst))
		return nil
	}
	table := output.NewTable("Revision", "Version", "Source", "Outcome", "Finished", "Message")
	for _, r := range history {
		revision := "-"
		if r.Revision > 0 {
			revision = fmt.Sprint(r.Revision)
		}
		finished := duration.HumanDuration(time.Since(r.FinishedAt.Time)) + " ago"
		if format.String() == "wide" {
			finished = r.FinishedAt.UTC().Format(time.RFC3339)
		}
		output.AddRow(table, revision, r.Version, r.SourceRevision, string(r.Outcome), finished, r.Message)
	}
	return output.PrintTable(env.Out, table, output.TableOptions{Wide: format.String() == "wide"})
}
