package data

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/complete"
	"waybill.dev/waybill/cmd/internal/output"
)

const cloneExamples = `  # Try something on a copy with the data of now
  waybill clone mongo mongo-test -n shop

  # A copy of yesterday, in another namespace
  waybill clone mongo mongo-test -n shop --snapshot mongo-20261103-091240 --to-namespace shop-test

  # An application whose objects have other names than it has itself
  waybill clone wordpress blog-test -n blog --rename mysql=mysql-test`

// cloning are the flags of the command `clone`.
type cloning struct {
	restoring

	snapshot      string
	snapshotClass string
	ttl           time.Duration
}

// NewClone returns the command `clone`.
func NewClone(env *cli.Env) *cobra.Command {
	o := &cloning{restoring: restoring{env: env, format: output.NewFormat()}}
	cmd := &cobra.Command{
		Use:   "clone APPLICATION NEWNAME",
		Short: "Create a copy of an application under another name, with its data",
		Long: `Create a copy of an application under another name, with its data.

Takes a snapshot and restores it under the new name, as "waybill snapshot" and "waybill restore --to"
do; with --snapshot, one that is there is restored. The two applications are independent from then
on. The snapshot that is taken is deleted after --ttl.`,
		Example:           cloneExamples,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: complete.Names(env, v1alpha1.StatefulApplicationKind),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0], args[1]) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.snapshot, "snapshot", "", "ApplicationSnapshot of the application to restore; a new one is taken unless given")
	flags.StringVar(&o.snapshotClass, "snapshot-class", "", "ApplicationSnapshotClass of the new snapshot; the default one of the cluster unless given")
	flags.DurationVar(&o.ttl, "ttl", 24*time.Hour, "Delete the new snapshot after this time; 0 keeps it")
	flags.StringVar(&o.class, "class", "", "StatefulApplicationClass; that of the application unless given")
	o.addFlags(cmd)
	complete.Flag(cmd, env, "snapshot", v1alpha1.ApplicationSnapshotKind)
	complete.Flag(cmd, env, "snapshot-class", v1alpha1.ApplicationSnapshotClassKind)
	complete.Flag(cmd, env, "class", v1alpha1.StatefulApplicationClassKind)
	return cmd
}

func (o *cloning) run(cmd *cobra.Command, name, to string) error {
	o.to = to
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
	if err != nil {
		return err
	}
	if o.class == "" {
		o.class = app.Spec.ApplicationClassName
	}
	snapshot, err := o.source(ctx, s, app)
	if err != nil {
		return err
	}
	return o.restore(ctx, s, snapshot, app.GetApplicationName())
}

// check rejects contradictory flags before the cluster is asked.
func (o *cloning) check() error {
	switch {
	case o.snapshot != "" && o.snapshotClass != "":
		return errors.New("--snapshot-class is for a new snapshot: leave out --snapshot or --snapshot-class")
	case o.snapshot == "" && !o.wait:
		return errors.New("--wait=false needs --snapshot: a new snapshot has to be ready before it can be restored")
	case o.snapshot == "" && o.format.Structured():
		return errors.New("--output needs --snapshot: the manifest names a snapshot that exists")
	case o.ttl != 0 && o.ttl < time.Second:
		return errors.New("--ttl must be at least 1s, or 0")
	}
	_, err := o.words()
	return err
}

// source returns the snapshot to restore. A new one is ready when it returns.
func (o *cloning) source(ctx context.Context, s *session, app *v1alpha1.StatefulApplication) (*v1alpha1.ApplicationSnapshot, error) {
	snapshot := &v1alpha1.ApplicationSnapshot{}
	if o.snapshot != "" {
		snapshot.Namespace, snapshot.Name = app.Namespace, o.snapshot
		if err := s.client.Get(ctx, objectKey(snapshot), snapshot); err != nil {
			return nil, fmt.Errorf("get %s: %w", nameOf(v1alpha1.ApplicationSnapshotKind, snapshot), s.target.Explain(err))
		}
		if of := snapshot.Spec.Source.ApplicationName; of != "" && of != app.Name {
			return nil, fmt.Errorf("%s is of StatefulApplication %s, and not of %s", nameOf(v1alpha1.ApplicationSnapshotKind, snapshot), of, app.Name)
		}
		return snapshot, nil
	}
	// What would be refused in the end is found out before the snapshot is taken.
	probe := &v1alpha1.ApplicationSnapshot{ObjectMeta: snapshot.ObjectMeta}
	probe.Namespace = app.Namespace
	copied, err := o.wanted(probe, app.GetApplicationName())
	if err != nil {
		return nil, err
	}
	if err := s.checkSelector(ctx, copied, app.Namespace, app.GetApplicationName()); err != nil {
		return nil, err
	}
	taking := &snapshotting{env: o.env, class: o.snapshotClass, ttl: o.ttl}
	if snapshot, err = taking.snapshot(ctx, s, app); err != nil {
		return nil, err
	}
	if err := s.create(ctx, snapshot); err != nil {
		return nil, err
	}
	return snapshot, s.follow(ctx, snapshot, read(ofSnapshot))
}
