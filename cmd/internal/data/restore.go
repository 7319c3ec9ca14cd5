package data

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/complete"
	"waybill.dev/waybill/cmd/internal/output"
)

const restoreExamples = `  # Create the application again that was deleted by accident
  waybill restore mongo-20261103-091240 -n shop

  # Beside the one that runs, under another name
  waybill restore mongo-20261103-091240 -n shop --to mongo-test

  # Into another namespace, and print what would be written
  waybill restore mongo-20261103-091240 -n shop --to-namespace shop-test -o yaml`

// restoring is what `restore` and `clone` have in common.
type restoring struct {
	waiting

	env         *cli.Env
	to          string
	toNamespace string
	renames     []string
	class       string // of the StatefulApplication
	format      *output.Format
}

// NewRestore returns the command `restore`.
func NewRestore(env *cli.Env) *cobra.Command {
	o := &restoring{env: env, format: output.NewFormat()}
	cmd := &cobra.Command{
		Use:   "restore SNAPSHOT",
		Short: "Create an application again from a snapshot, with its data",
		Long: `Create an application again from a snapshot, with its data.

Creates a StatefulApplication whose source is the snapshot, and follows the restore step by step.
Nothing that exists is changed: if an object of the snapshot is there, the restore fails before
anything is made. To take an application that runs back to a snapshot, use "waybill rollback".

With --to, the application gets another name: in the names of its objects, and wherever they are
referred to, the old name becomes the new one, and so do labels that have it as their value, in
selectors too. --rename does the same for other words. What that comes to in valueSubstitutionRules
is printed by -o yaml.

The snapshot is looked for in all namespaces unless -n is given, that of the kubeconfig first; the
application is restored in the namespace of the snapshot unless --to-namespace is given.`,
		Example:           restoreExamples,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: complete.Names(env, v1alpha1.ApplicationSnapshotKind),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.to, "to", "", "Name of the application that is created; that in the snapshot unless given")
	flags.StringVar(&o.class, "class", "", "StatefulApplicationClass; the default one of the cluster unless given")
	o.addFlags(cmd)
	complete.Flag(cmd, env, "class", v1alpha1.StatefulApplicationClassKind)
	return cmd
}

func (o *restoring) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.toNamespace, "to-namespace", "", "Namespace of the application that is created; that of the snapshot unless given")
	flags.StringArrayVar(&o.renames, "rename", nil, "Replace a word in names and label values, too: OLD=NEW; several times for several")
	o.waiting.addFlags(cmd, 30*time.Minute)
	o.format.AddFlag(cmd)
	cmd.Flag("output").Usage = "Print the manifest of the StatefulApplication as json or yaml, and write nothing"
	complete.Flag(cmd, o.env, "to-namespace", "")
}

func (o *restoring) run(cmd *cobra.Command, name string) error {
	if _, err := o.words(); err != nil {
		return err
	}
	ctx, cancel := o.env.Context(cmd, o.timeout)
	defer cancel()
	s, err := newSession(ctx, o.env)
	if err != nil {
		return err
	}
	snapshot := &v1alpha1.ApplicationSnapshot{}
	if err := s.locate(ctx, v1alpha1.ApplicationSnapshotKind, name, snapshot); err != nil {
		return err
	}
	old, err := s.applicationOf(ctx, snapshot)
	if err != nil {
		return err
	}
	return o.restore(ctx, s, snapshot, old)
}

// applicationOf returns the name of the Application that a snapshot was taken of.
func (s *session) applicationOf(ctx context.Context, snapshot *v1alpha1.ApplicationSnapshot) (string, error) {
	name := snapshot.Spec.Source.ApplicationName
	if name == "" { // it was bound to a content
		content := &v1alpha1.ApplicationSnapshotContent{}
		key := client.ObjectKey{Name: cmp.Or(snapshot.Status.BoundSnapshotContentName, snapshot.Spec.SnapshotContentName)}
		if err := s.client.Get(ctx, key, content); err != nil {
			return "", fmt.Errorf("look up which application the snapshot is of: get ApplicationSnapshotContent/%s: %w", key.Name, err)
		}
		if content.Status.ApplicationName == "" {
			return "", fmt.Errorf("ApplicationSnapshotContent/%s does not say yet which application it is of", key.Name)
		}
		return content.Status.ApplicationName, nil
	}
	app := &v1alpha1.StatefulApplication{}
	err := s.client.Get(ctx, client.ObjectKey{Namespace: snapshot.Namespace, Name: name}, app)
	switch {
	case err == nil:
		return app.GetApplicationName(), nil
	case apierrors.IsNotFound(err) || apierrors.IsForbidden(err):
		return name, nil
	}
	return "", fmt.Errorf("get StatefulApplication/%s in %s: %w", name, snapshot.Namespace, s.target.Explain(err))
}

// restore creates the StatefulApplication and follows it. old is the name of the Application in the
// snapshot.
func (o *restoring) restore(ctx context.Context, s *session, snapshot *v1alpha1.ApplicationSnapshot, old string) error {
	app, err := o.wanted(snapshot, old)
	if err != nil {
		return err
	}
	if err := s.checkSelector(ctx, app, snapshot.Namespace, old); err != nil {
		return err
	}
	if o.format.Structured() {
		return s.print(o.format, app)
	}
	err = s.create(ctx, app)
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("StatefulApplication/%s in %s exists: restore it under another name with --to, or take it back to the snapshot with: waybill rollback %s -n %s --to %s",
			app.Name, app.Namespace, app.Name, app.Namespace, snapshot.Name)
	}
	if err != nil || !o.wait {
		return err
	}
	var restored *v1alpha1.StatefulApplication
	err = s.follow(ctx, app, read(func(a *v1alpha1.StatefulApplication) course {
		restored = a
		return ofRestore(a)
	}))
	if restored != nil {
		s.remark(restored)
	}
	return err
}

// remark prints what the restore reports beside its outcome: objects that were refused, and rules that
// changed nothing.
func (s *session) remark(app *v1alpha1.StatefulApplication) {
	if app.Status.Restore == nil {
		return
	}
	for _, p := range app.Status.Restore.Problems {
		s.env.Warnf("%s %s: %s: %s", p.Kind, p.Name, p.Reason, p.Message)
	}
	for _, hits := range app.Status.Restore.Rules {
		if i := int(hits.Rule); hits.Hits == 0 && i >= 0 && i < len(app.Spec.ValueSubstitutionRules) {
			rule := app.Spec.ValueSubstitutionRules[i]
			s.env.Warnf("spec.valueSubstitutionRules[%d] changed nothing: no %s is %q", i, strings.ToLower(string(rule.Type)), rule.OldValue)
		}
	}
}

// wanted returns the StatefulApplication to create.
func (o *restoring) wanted(snapshot *v1alpha1.ApplicationSnapshot, old string) (*v1alpha1.StatefulApplication, error) {
	words, err := o.words()
	if err != nil {
		return nil, err
	}
	to := cmp.Or(o.to, old)
	if to != old && !slices.ContainsFunc(words, func(w word) bool { return w.old == old }) {
		words = slices.Insert(words, 0, word{old, to})
	}
	app := &v1alpha1.StatefulApplication{
		ObjectMeta: metav1.ObjectMeta{Namespace: cmp.Or(o.toNamespace, snapshot.Namespace), Name: to},
		Spec: v1alpha1.StatefulApplicationSpec{
			ApplicationClassName: o.class, ApplicationName: to,
			Source: &v1alpha1.DataSource{
				Type:        v1alpha1.DataSourceSnapshot,
				SnapshotRef: &v1alpha1.SnapshotReference{Name: snapshot.Name},
			},
		},
	}
	if app.Namespace != snapshot.Namespace {
		app.Spec.Source.SnapshotRef.Namespace = snapshot.Namespace
	}
	for _, w := range words {
		app.Spec.ValueSubstitutionRules = append(app.Spec.ValueSubstitutionRules,
			v1alpha1.ValueSubstitutionRule{Type: v1alpha1.SubstitutionName, OldValue: w.old, NewValue: w.new, Match: v1alpha1.MatchSubstring},
			v1alpha1.ValueSubstitutionRule{Type: v1alpha1.SubstitutionLabel, OldValue: w.old, NewValue: w.new, Match: v1alpha1.MatchExact},
		)
	}
	return app, nil
}

// word is replaced by another one, in names and in values of labels.
type word struct{ old, new string }

// words reads --rename.
func (o *restoring) words() ([]word, error) {
	var words []word
	for _, rename := range o.renames {
		from, to, found := strings.Cut(rename, "=")
		if !found || from == "" || to == "" {
			return nil, fmt.Errorf("--rename %q: write OLD=NEW", rename)
		}
		words = append(words, word{from, to})
	}
	return words, nil
}

// errOverlap is why two applications must not have the same labels.
var errOverlap = errors.New("so that Services and workloads of one would select the Pods of the other: " +
	"replace the value of one of the labels with --rename OLD=NEW, or use another namespace with --to-namespace")

// checkSelector refuses a copy that would have the labels of an Application beside it: their Services
// and workloads would take each other's Pods.
func (s *session) checkSelector(ctx context.Context, copied *v1alpha1.StatefulApplication, namespace, old string) error {
	if copied.Namespace != namespace {
		return nil
	}
	beside := &v1alpha1.Application{}
	if err := s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: old}, beside); err != nil || beside.Spec.Selector == nil {
		return nil //nolint:nilerr // without it there is nothing to compare: the API server judges the rest
	}
	selector := beside.Spec.Selector.MatchLabels
	for _, value := range selector {
		if slices.ContainsFunc(copied.Spec.ValueSubstitutionRules, func(r v1alpha1.ValueSubstitutionRule) bool {
			return r.Type == v1alpha1.SubstitutionLabel && r.OldValue == value
		}) {
			return nil
		}
	}
	return fmt.Errorf("the objects of %s would have the labels of Application/%s, %s, %w",
		nameOf(v1alpha1.StatefulApplicationKind, copied), old, metav1.FormatLabelSelector(beside.Spec.Selector), errOverlap)
}
