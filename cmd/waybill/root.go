package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/cmd/internal/adopt"
	"waybill.dev/waybill/cmd/internal/buildinfo"
	"waybill.dev/waybill/cmd/internal/catalog"
	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/clusters"
	"waybill.dev/waybill/cmd/internal/complete"
	"waybill.dev/waybill/cmd/internal/convert"
	"waybill.dev/waybill/cmd/internal/dashboard"
	"waybill.dev/waybill/cmd/internal/data"
	"waybill.dev/waybill/cmd/internal/describe"
	"waybill.dev/waybill/cmd/internal/diff"
	"waybill.dev/waybill/cmd/internal/events"
	"waybill.dev/waybill/cmd/internal/get"
	apps "waybill.dev/waybill/cmd/internal/install"
	"waybill.dev/waybill/cmd/internal/logs"
	"waybill.dev/waybill/cmd/internal/reconcile"
	"waybill.dev/waybill/cmd/internal/render"
	"waybill.dev/waybill/cmd/internal/suspend"
	"waybill.dev/waybill/cmd/internal/tree"
	"waybill.dev/waybill/cmd/internal/validate"
)

// newRoot returns the program with all of its commands. name is the name that it was called by: a
// file called kubectl-waybill is the plugin `kubectl waybill`.
func newRoot(env *cli.Env, name string) *cobra.Command {
	root := &cobra.Command{
		Use:   "waybill",
		Short: "See and steer what Waybill keeps running in your clusters",
		Long: `See and steer what Waybill keeps running in your clusters.

It acts in the cluster of the kubeconfig, which is the hub, or in the user cluster that --cluster
names. Results go to the standard output, all else to the standard error.

Ends with exit code 0 when it is done and nothing is wrong; with 1 when it is done and the answer
is no: a manifest is invalid, an object did not become ready, there are differences; and with 2
when it is not done, which the error explains.`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	if base := filepath.Base(name); strings.HasPrefix(base, "kubectl-") {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl waybill"}
	}
	root.SetIn(env.In)
	root.SetOut(env.Out)
	root.SetErr(env.ErrOut)
	env.AddFlags(root.PersistentFlags())
	complete.Flags(root, env)
	addGroup(root, "look", "Look:", get.New(env), tree.New(env), describe.New(env), events.New(env), logs.New(env), dashboard.New(env))
	addGroup(root, "try", "Try, without changing anything:", validate.New(env), render.New(env), diff.New(env))
	addGroup(root, "install", "Install and upgrade applications:", apps.New(env), apps.NewUpgrade(env), apps.NewUninstall(env),
		apps.NewHistory(env), apps.NewValues(env), apps.NewVersions(env))
	addGroup(root, "publish", "Publish applications:", catalog.New(env))
	addGroup(root, "act", "Act:", reconcile.New(env), suspend.NewSuspend(env), suspend.NewResume(env),
		adopt.New(env), convert.New(env), clusters.New(env))
	addGroup(root, "data", "Look after the data of applications:", data.NewSnapshot(env), data.NewRestore(env), data.NewClone(env), apps.WithRollback(env, data.NewRollback(env)))
	root.AddCommand(buildinfo.New(env))
	root.Version = env.Version // for --version
	root.SetVersionTemplate(buildinfo.Text(env))
	for _, verb := range root.Commands() {
		explainUse(verb)
	}
	return root
}

// explainUse has a verb say how it is used when its arguments or flags are wrong.
func explainUse(verb *cobra.Command) {
	usage := func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w\nusage: %s\n`%s --help` explains it", err, cmd.UseLine(), cmd.CommandPath())
	}
	verb.SetFlagErrorFunc(usage)
	for _, sub := range verb.Commands() {
		explainUse(sub)
	}
	if check := verb.Args; check != nil {
		verb.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return usage(cmd, err)
			}
			return nil
		}
	}
}

func addGroup(root *cobra.Command, id, title string, verbs ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: id, Title: title})
	for _, verb := range verbs {
		verb.GroupID = id
		root.AddCommand(verb)
	}
}
