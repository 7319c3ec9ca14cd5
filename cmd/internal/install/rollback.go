package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/complete"
	"waybill.dev/waybill/cmd/internal/delivered"
	"waybill.dev/waybill/cmd/internal/installation"
	"waybill.dev/waybill/sync/release"
	"waybill.dev/waybill/sync/render/helm"
	"waybill.dev/waybill/sync/values"
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
	after := before.DeepCopy()
	if err := s.setVersion(ctx, after, to.Version); err != nil {
		return err
	}
	if err := o.setValues(ctx, s, after, to); err != nil {
		return err
	}
	if reflect.DeepEqual(before.Spec, after.Spec) {
		return fmt.Errorf("%s wants %s %s with these values already: `waybill history %s%s` shows what became of it",
			s.nameOf(before), before.Spec.ApplicationRef.Name, to.Version, name, s.there(before))
	}
	if !o.tries() {
		if err := delivered.Check(ctx, s.env, s.nameOf(before), before, o.force); err != nil {
			return err
		}
	}
	return s.changeAndFollow(ctx, &o.writing, wait, before, after)
}

// record returns the entry of the history to go back to.
func (o *goingBack) record(s *session, inst *v1alpha1.ApplicationInstallation) (*v1alpha1.InstallationRecord, error) {
	var there []string
	for i := range inst.Status.History {
		r := &inst.Status.History[i]
		switch {
		case r.Revision == 0 || r.Version == "":
			continue
		case r.Revision == o.revision && r.Outcome == v1alpha1.InstallationFailed:
			return nil, fmt.Errorf("revision %d of %s failed: %s", r.Revision, s.nameOf(inst), r.Message)
		case r.Revision == o.revision:
			return r, nil
		case r.Outcome != v1alpha1.InstallationFailed:
			there = append(there, fmt.Sprintf("%d (%s)", r.Revision, r.Version))
		}
	}
	if len(there) == 0 {
		return nil, fmt.Errorf("the history of %s has no revision to go back to", s.nameOf(inst))
	}
	wanted := fmt.Sprintf("no revision %d", o.revision)
	if o.revision == 0 {
		wanted = "several revisions"
	}
	return nil, fmt.Errorf("the history of %s has %s: choose one with --to-revision: %s", s.nameOf(inst), wanted, strings.Join(there, ", "))
}

// setValues sets the values that an installation had at a revision. If those cannot be told for sure, it
// is an error: an old version with other values than before is not what was asked for.
func (o *goingBack) setValues(ctx context.Context, s *session, inst *v1alpha1.ApplicationInstallation, to *v1alpha1.InstallationRecord) error {
	if o.keepValues || inst.ValuesDigest() == to.ValuesDigest {
		return nil
	}
	own, err := s.valuesAt(ctx, inst, to)
	if err != nil {
		return fmt.Errorf("%s has other values than at revision %d, and those cannot be set again: %w; "+
			"--keep-values goes back to version %s and leaves the values as they are", s.nameOf(inst), to.Revision, err, to.Version)
	}
	if inst.Spec.ValuesBlock != "" {
		s.env.Warnf("the values of %s are a block with comments: spec.values takes its place, without them", s.nameOf(inst))
	}
	return setValues(inst, own)
}

// valuesAt returns what an installation has to set itself for the values of a revision: what Helm's
// record of it has, and what lies below does not say already.
func (s *session) valuesAt(ctx context.Context, inst *v1alpha1.ApplicationInstallation, to *v1alpha1.InstallationRecord) (map[string]any, error) {
	known := inst.Status.Release
	switch {
	case known == nil:
		return nil, errors.New("only Helm records values")
	case to.SecretValues || inst.HasSecretValues():
		return nil, errors.New("some came from a Secret, and would be readable in spec.values")
	}
	id := release.Identity{Namespace: known.Namespace, Name: known.Name}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: known.Namespace, Name: id.RecordName(int(to.Revision))}
	if err := s.client.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("get Secret %s, Helm's record: %w", key, s.target.Explain(err))
	}
	had, err := release.RecordedValues(secret, int(to.Revision), known)
	if err != nil {
		return nil, err
	}
	hub, err := s.env.Hub()
	if err != nil {
		return nil, err
	}
	below := inst.DeepCopy()
	below.Spec.Values, below.Spec.ValuesBlock = nil, ""
	lookup := &installation.Lookup{Hub: hub, Target: s.target, Warn: s.env.Warnf, SystemNamespace: s.env.SystemNamespace}
	resolved, err := lookup.Resolve(ctx, installation.Wish{Installation: below})
	if err != nil {
		return nil, err
	}
	return over(resolved.Values, had)
}

// over returns what lies over values so that they become what they were.
func over(below, had map[string]any) (map[string]any, error) {
	had, err := plain(had)
	if err != nil {
		return nil, err
	}
	if below, err = plain(below); err != nil {
		return nil, err
	}
	own := differing(below, had)
	if merged := helm.MergeValues(below, own); !reflect.DeepEqual(merged, had) {
		return nil, errors.New("the definition, or an object of spec.valuesFrom, sets others by now, which no value of the installation takes back")
	}
	return own, nil
}

// differing returns the values of had that below has not.
func differing(below, had map[string]any) map[string]any {
	own := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(had)) {
		value := had[name]
		under, there := below[name]
		inner, isMap := value.(map[string]any)
		innerUnder, underMap := under.(map[string]any)
		switch {
		case there && reflect.DeepEqual(value, under):
		case isMap && underMap:
			own[name] = differing(innerUnder, inner)
		default:
			own[name] = value
		}
	}
	return own
}

// plain returns values as they are read from YAML, whatever the types of their numbers.
func plain(from map[string]any) (map[string]any, error) {
	if len(from) == 0 {
		return map[string]any{}, nil
	}
	text, err := json.Marshal(from)
	if err != nil {
		return nil, fmt.Errorf("read values: %w", err)
	}
	return values.Parse(text)
}

// jsonOf returns a value as JSON, in a line.
func jsonOf(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value) // it was read from YAML or JSON, which has no such value
	}
	return string(text)
}
