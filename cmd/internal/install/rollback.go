package install

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/complete"
	"waybill.dev/waybill/cmd/internal/delivered"
)

// goingBack are the flags of the command `rollback` for installations.
type goingBack struct {
	writing

	env        *cli.Env
	revision   int32
	keepValues bool
}

// WithRollback has the command `rollback`, which takes the data of applications back, also take
// installations back to a revision.
func WithRollback(env *cli.Env, cmd *cobra.Command) *cobra.Command {
	o := &goingBack{env: env}
	flags := cmd.Flags()
	flags.Int32Var(&o.revision, "to-revision", 0, "Revision of an ApplicationInstallation, as `waybill history` shows it, whose version and values to set again")
	flags.BoolVar(&o.keepValues, "keep-values", false, "With --to-revision, set only the version again, and leave the values as they are")
	flags.BoolVar(&o.force, "force", false, "With --to-revision, also change an installation that a GitSync delivers, and puts back")
	o.addFlags(cmd)
	flags.Lookup("dry-run").Usage = "With --to-revision, show what would change and write nothing"
	flags.Lookup("output").Usage = "With --to-revision, print the manifest for a commit, as json or yaml, and write nothing"
	applications, names := cmd.RunE, cmd.ValidArgsFunction
	installations := complete.References(env, v1alpha1.ApplicationInstallationKind)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 && strings.Contains(typed, "/") {
			return installations(cmd, args, typed)
		}
		return names(cmd, args, typed)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		of, name, err := o.meant(cmd, args[0])
		switch {
		case err != nil:
			return err
		case of == v1alpha1.ApplicationInstallationKind:
			return o.run(cmd, name)
		}
		return applications(cmd, []string{name})
	}
	return cmd
}

// ofApplications are the flags that are about the data of an application.
var ofApplications = []string{"to", "undo", "confirm", "release", "name", "class", "undo-period", "hold", "watch"}

// ofInstallations are those that are about an installation.
var ofInstallations = []string{"to-revision", "keep-values", "force", "dry-run", "output"}

// meant returns which kind an argument means, and the name, and an error if the flags are those of the
// other kind.
func (o *goingBack) meant(cmd *cobra.Command, arg string) (of, name string, err error) {
	word, name, found := strings.Cut(arg, "/")
	switch strings.ToLower(word) {
	case "applicationinstallation", "applicationinstallations", "installation", "installations", "ai":
		of = v1alpha1.ApplicationInstallationKind
	case "application", "applications", "statefulapplication", "statefulapplications", "sapp":
		of = v1alpha1.ApplicationKind
	}
	if !found {
		of, name = v1alpha1.ApplicationKind, arg
		if cmd.Flags().Changed("to-revision") {
			of = v1alpha1.ApplicationInstallationKind
		}
	}
	changed := func(flags []string) string {
		for _, flag := range flags {
			if cmd.Flags().Changed(flag) {
				return flag
			}
		}
		return ""
	}
	switch {
	case of == "":
		return "", "", fmt.Errorf("%s cannot be rolled back: name an application, or installation/NAME", arg)
	case of == v1alpha1.ApplicationInstallationKind && changed(ofApplications) != "":
		return "", "", fmt.Errorf("--%s is for the data of an application, as in `waybill rollback %s --to SNAPSHOT`: an ApplicationInstallation goes back to a revision of its history, with --to-revision", changed(ofApplications), name)
	case of == v1alpha1.ApplicationKind && changed(ofInstallations) != "":
		return "", "", fmt.Errorf("--%s is for an ApplicationInstallation, as in `waybill rollback installation/%s --to-revision REVISION`: the data of an application goes back to a snapshot, with --to", changed(ofInstallations), name)
	}
	return of, name, nil
}

func (o *goingBack) run(cmd *cobra.Command, name string) error {
	if err := o.check(); err != nil {
		return err
	}
	wait := waiting{}
	var err error
	if wait.wait, err = cmd.Flags().GetBool("wait"); err != nil {
		return err
	}
	if wait.timeout, err = cmd.Flags().GetDuration("timeout"); err != nil {
		return err
	}
	ctx, cancel := o.env.Context(cmd, wait.timeout)
	defer cancel()
	s, err := newSession(ctx, o.env)
	if err != nil {
		return err
	}
	before, err := s.locate(ctx, name)
	if err != nil {
		return err
	}
	to, err := o.record(s, before)
	if err != nil {
		return err
	}
	after, err := s.RollBack(ctx, before, to, o.keepValues)
	if errors.As(err, new(*ValuesLostError)) {
		return fmt.Errorf("%w; --keep-values goes back to version %s and leaves the values as they are", err, to.Version)
	}
	if err != nil {
		return err
	}
	if reflect.DeepEqual(before.Spec, after.Spec) {
		return fmt.Errorf("%s wants %s %s with these values already: `waybill history %s%s` shows what became of it",
			s.NameOf(before), before.Spec.ApplicationRef.Name, to.Version, name, s.there(before))
	}
	if !o.tries() {
		if err := delivered.Check(ctx, s.Place, s.NameOf(before), before, o.force); err != nil {
			return err
		}
	}
	return s.changeAndFollow(ctx, &o.writing, wait, before, after)
}

// record returns the entry of the history to go back to.
func (o *goingBack) record(s *session, inst *v1alpha1.ApplicationInstallation) (*v1alpha1.InstallationRecord, error) {
	var there []string
	for _, r := range Revisions(inst) {
		if r.Revision == o.revision {
			return r, nil
		}
		there = append(there, fmt.Sprintf("%d (%s)", r.Revision, r.Version))
	}
	for _, r := range inst.Status.History {
		if r.Revision == o.revision && o.revision != 0 && r.Outcome == v1alpha1.InstallationFailed {
			return nil, fmt.Errorf("revision %d of %s failed: %s", r.Revision, s.NameOf(inst), r.Message)
		}
	}
	if len(there) == 0 {
		return nil, fmt.Errorf("the history of %s has no revision to go back to", s.NameOf(inst))
	}
	wanted := fmt.Sprintf("no revision %d", o.revision)
	if o.revision == 0 {
		wanted = "several revisions"
	}
	return nil, fmt.Errorf("the history of %s has %s: choose one with --to-revision: %s", s.NameOf(inst), wanted, strings.Join(there, ", "))
}
