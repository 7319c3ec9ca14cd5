package data

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/complete"
)

const rollbackExamples = `  # Take the application back to a snapshot
  waybill rollback mongo -n shop --to mongo-20261103-091240

  # It was a mistake: back to the state before
  waybill rollback mongo -n shop --undo

  # It is well: delete the volumes of before now
  waybill rollback mongo -n shop --confirm

  # Let git and the installation change the application again
  waybill rollback mongo -n shop --release

  # Go back to the version and the values of a revision of an installation; its data stays
  waybill rollback installation/web -n team-a --to-revision 3`

// rollingBack are the flags of the command `rollback`.
type rollingBack struct {
	waiting

	env        *cli.Env
	to         string
	class      string
	name       string
	undoPeriod time.Duration
	given      bool // whether --undo-period is
	hold       bool
	watch      bool
	undo       bool
	confirm    bool
	release    bool
}

// NewRollback returns the command `rollback`.
func NewRollback(env *cli.Env) *cobra.Command {
	o := &rollingBack{env: env}
	cmd := &cobra.Command{
		Use:   "rollback APPLICATION --to SNAPSHOT | --undo | --confirm | --release | installation/NAME --to-revision REVISION",
		Short: "Take an application back to a snapshot with its data, or an installation to a revision",
		Long: `Take an application back to a snapshot, in place: its configuration and its data. Or take an
ApplicationInstallation back to a revision of its history: its version and its values, and no data.

With --to-revision, the version of that revision is set again, and its values, if they are others by
now: from Helm's record of it, which you need to be allowed to read. If they cannot be told for sure,
or some came from a Secret, nothing is written, and --keep-values goes back to the version alone.

For an application, it creates an ApplicationRollback and follows it step by step. A snapshot of the state before is taken
first, and the volumes of before are kept for the undo period: until then, --undo goes back to them,
and --confirm deletes them at once. A rollback that fails goes back to the state before by itself,
and the command ends with exit code 1.

What was rolled back is held: GitSyncs, ApplicationInstallations and KubernetesApplications leave it
as it is until what they want for it changes. --release ends that.

--undo, --confirm and --release act on the newest ApplicationRollback of the application, or on the
one of --name. APPLICATION is looked for in all namespaces unless -n is given, that of the kubeconfig
first. Interrupting the command leaves the rollback alone: it goes on.`,
		Example:           rollbackExamples,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: complete.Names(env, v1alpha1.StatefulApplicationKind),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.given = cmd.Flags().Changed("undo-period")
			return o.run(cmd, args[0])
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.to, "to", "", "ApplicationSnapshot of the application, in its namespace")
	flags.BoolVar(&o.undo, "undo", false, "Go back to the state before the rollback")
	flags.BoolVar(&o.confirm, "confirm", false, "Delete the volumes of before")
	flags.BoolVar(&o.release, "release", false, "Let those who deliver the objects change them again")
	flags.StringVar(&o.name, "name", "", "Name of the ApplicationRollback; APPLICATION-DATE-TIME, or the newest, unless given")
	flags.StringVar(&o.class, "class", "", "ApplicationSnapshotClass of the snapshot of the state before; that of SNAPSHOT unless given")
	flags.DurationVar(&o.undoPeriod, "undo-period", 24*time.Hour, "How long the volumes of before are kept; 0 deletes them once the application is ready")
	flags.BoolVar(&o.hold, "hold", true, "Keep GitSyncs and installations from changing what was rolled back")
	flags.BoolVar(&o.watch, "watch", false, "Follow the rollback until it is confirmed or undone, or its undo period is over")
	o.addFlags(cmd, 30*time.Minute)
	complete.Flag(cmd, env, "to", v1alpha1.ApplicationSnapshotKind)
	complete.Flag(cmd, env, "name", v1alpha1.ApplicationRollbackKind)
	complete.Flag(cmd, env, "class", v1alpha1.ApplicationSnapshotClassKind)
	return cmd
}

func (o *rollingBack) run(cmd *cobra.Command, name string) error {
	if err := o.check(); err != nil {
		return err
	}
	ctx, cancel := o.env.Context(cmd, o.timeout)
	defer cancel()
	s, err := newSession(ctx, o.env)
	if err != nil {
		return err
	}
	app, err := s.application(ctx, name, false)
	if _, notNumber := strconv.Atoi(o.to); err != nil && notNumber == nil {
		return fmt.Errorf("%w; to go back to a revision of an installation: waybill rollback installation/%s --to-revision %s", err, name, o.to)
	}
	if err != nil {
		return err
	}
	if o.to != "" {
		return o.begin(ctx, s, app)
	}
	rollback, err := o.newest(ctx, s, app)
	if err != nil {
		return err
	}
	switch {
	case o.undo:
		return o.decide(ctx, s, rollback, v1alpha1.RollbackUndone)
	case o.confirm:
		return o.decide(ctx, s, rollback, v1alpha1.RollbackConfirmed)
	}
	return s.release(ctx, rollback)
}

// check rejects contradictory flags before the cluster is asked.
func (o *rollingBack) check() error {
	chosen := 0
	for _, given := range []bool{o.to != "", o.undo, o.confirm, o.release} {
		if given {
			chosen++
		}
	}
	switch {
	case chosen != 1:
		return errors.New("choose one of --to SNAPSHOT, --undo, --confirm and --release; or name installation/NAME with --to-revision REVISION")
	case o.to == "" && (o.class != "" || o.given || !o.hold || o.watch):
		return errors.New("--class, --undo-period, --hold and --watch are for --to")
	case o.watch && !o.wait:
		return errors.New("--watch and --wait=false exclude each other")
	case o.undoPeriod < 0:
		return errors.New("--undo-period must be 0 or more")
	}
	return nil
}

// begin creates the ApplicationRollback and follows it.
func (o *rollingBack) begin(ctx context.Context, s *session, app *v1alpha1.StatefulApplication) error {
	snapshot := &v1alpha1.ApplicationSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: app.Namespace, Name: o.to}}
	if err := s.client.Get(ctx, objectKey(snapshot), snapshot); err != nil {
		return fmt.Errorf("get %s: %w", nameOf(v1alpha1.ApplicationSnapshotKind, snapshot), s.target.Explain(err))
	}
	rollback := &v1alpha1.ApplicationRollback{
		ObjectMeta: metav1.ObjectMeta{Namespace: app.Namespace, Name: cmp.Or(o.name, stamped(app.Name))},
		Spec: v1alpha1.ApplicationRollbackSpec{
			SnapshotClassName: cmp.Or(o.class, snapshot.Spec.SnapshotClassName),
			ApplicationName:   app.Name,
			Source: v1alpha1.DataSource{
				Type:        v1alpha1.DataSourceSnapshot,
				SnapshotRef: &v1alpha1.SnapshotReference{Name: snapshot.Name},
			},
		},
	}
	if o.given {
		rollback.Spec.UndoPeriod = &metav1.Duration{Duration: o.undoPeriod}
	}
	if !o.hold {
		rollback.Spec.Hold = &o.hold
	}
	if err := s.create(ctx, rollback); err != nil || !o.wait {
		return err
	}
	completed := false
	err := s.follow(ctx, rollback, read(func(r *v1alpha1.ApplicationRollback) course {
		completed = r.Status.Phase == v1alpha1.RollbackCompleted
		if o.watch {
			return ofRollback(r, v1alpha1.RollbackFinal)
		}
		return ofRollback(r, v1alpha1.RollbackCompleted, v1alpha1.RollbackFinal)
	}))
	if o.watch && completed && errors.Is(ctx.Err(), context.Canceled) {
		return nil // the user has seen enough
	}
	if err == nil && completed {
		fmt.Fprintf(s.env.Out, "The volumes of before are kept for %s: waybill rollback %s -n %s%s --undo goes back to them, --confirm deletes them\n",
			rollback.GetUndoPeriod(), app.Name, app.Namespace, s.there())
	}
	return err
}
