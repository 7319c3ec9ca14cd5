package data

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/complete"
	"waybill.dev/waybill/cmd/internal/output"
)

const snapshotExamples = `  # Take a snapshot with the default class of the cluster
  waybill snapshot mongo -n shop --cluster berlin

  # With a class, a name and tags, and delete it after a month
  waybill snapshot mongo -n shop --class mongo --name before-migration --tag ticket=4711 --ttl 720h

  # What belongs to it, and why
  waybill snapshot mongo -n shop --dry-run

  # The manifest, for a git repository
  waybill snapshot mongo -n shop --class mongo -o yaml`

// snapshotting are the flags of the command `snapshot`.
type snapshotting struct {
	waiting

	env           *cli.Env
	class         string
	name          string
	tags          map[string]string
	ttl           time.Duration
	claims        string
	volumeTimeout time.Duration
	wrap          bool
	dryRun        bool
	format        *output.Format
}

// NewSnapshot returns the command `snapshot`.
func NewSnapshot(env *cli.Env) *cobra.Command {
	o := &snapshotting{env: env, format: output.NewFormat()}
	cmd := &cobra.Command{
		Use:   "snapshot APPLICATION",
		Short: "Take a snapshot of an application: its configuration and its data",
		Long: `Take a snapshot of an application: its configuration and its data at one moment.

Creates an ApplicationSnapshot and follows it step by step. Ends with exit code 1, and what
status.error says, when the snapshot failed, and when it did not become ready in time. Interrupting
the command leaves the snapshot alone: it goes on.

APPLICATION is a StatefulApplication, or an Application that has one; --wrap creates it. It is looked
for in all namespaces unless -n is given, that of the kubeconfig first.

With --dry-run, nothing is written: what belongs to the application is listed, and why, as far as you
may read it.`,
		Example:           snapshotExamples,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: complete.Names(env, v1alpha1.StatefulApplicationKind),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.class, "class", "", "ApplicationSnapshotClass; the default one of the cluster unless given")
	flags.StringVar(&o.name, "name", "", "Name of the snapshot; APPLICATION-DATE-TIME unless given")
	flags.StringToStringVar(&o.tags, "tag", nil, "A tag that goes with the snapshot: KEY=VALUE; several with commas, or several times")
	flags.DurationVar(&o.ttl, "ttl", 0, "Delete the snapshot this long after it is ready or has failed; never unless given")
	flags.StringVar(&o.claims, "claims", "", "Label selector of the PersistentVolumeClaims whose volumes are snapshotted; all unless given")
	flags.DurationVar(&o.volumeTimeout, "volume-timeout", 0, "How long the volumes may take to become ready; 10m unless given")
	flags.BoolVar(&o.wrap, "wrap", false, "Create the StatefulApplication if there is only an Application")
	flags.BoolVar(&o.dryRun, "dry-run", false, "List what belongs to the snapshot, and write nothing")
	o.addFlags(cmd, 15*time.Minute)
	o.format.AddFlag(cmd)
	cmd.Flag("output").Usage = "Print the manifest of the snapshot as json or yaml, and write nothing"
	complete.Flag(cmd, env, "class", v1alpha1.ApplicationSnapshotClassKind)
	return cmd
}

func (o *snapshotting) run(cmd *cobra.Command, name string) error {
	if err := o.check(); err != nil {
		return err
	}
	ctx, cancel := o.env.Context(cmd, o.timeout)
	defer cancel()
	s, err := newSession(ctx, o.env)
	if err != nil {
		return err
	}
	if o.dryRun {
		return s.listContents(ctx, name, o.claims)
	}
	app, err := s.application(ctx, name, o.wrap && !o.format.Structured())
	if err != nil {
		return err
	}
	snapshot, err := o.snapshot(ctx, s, app)
	if err != nil {
		return err
	}
	if o.format.Structured() {
		return s.print(o.format, snapshot)
	}
	if err := s.create(ctx, snapshot); err != nil || !o.wait {
		return err
	}
	return s.follow(ctx, snapshot, read(ofSnapshot))
}

// check rejects contradictory flags before the cluster is asked.
func (o *snapshotting) check() error {
	switch {
	case o.dryRun && o.format.Structured():
		return errors.New("--dry-run lists what belongs to the snapshot, and --output prints its manifest: choose one")
	case o.ttl != 0 && o.ttl < time.Second:
		return errors.New("--ttl must be at least 1s")
	case o.volumeTimeout != 0 && o.volumeTimeout < time.Second:
		return errors.New("--volume-timeout must be at least 1s")
	}
	_, err := o.filter()
	return err
}

// filter returns --claims as the spec has it; nil if it is not given.
func (o *snapshotting) filter() (*metav1.LabelSelector, error) {
	if o.claims == "" {
		return nil, nil
	}
	selector, err := metav1.ParseToLabelSelector(o.claims)
	if err != nil {
		return nil, fmt.Errorf("read --claims: %w", err)
	}
	return selector, nil
}

// snapshot returns the ApplicationSnapshot to create.
func (o *snapshotting) snapshot(ctx context.Context, s *session, app *v1alpha1.StatefulApplication) (*v1alpha1.ApplicationSnapshot, error) {
	class, err := s.snapshotClass(ctx, o.class)
	if err != nil {
		return nil, err
	}
	filter, err := o.filter()
	if err != nil {
		return nil, err
	}
	snapshot := &v1alpha1.ApplicationSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: app.Namespace, Name: cmp.Or(o.name, stamped(app.Name))},
		Spec: v1alpha1.ApplicationSnapshotSpec{
			SnapshotClassName:           class,
			Source:                      v1alpha1.SnapshotSource{Type: v1alpha1.SnapshotSourceApplication, ApplicationName: app.Name},
			Tags:                        o.tags,
			PersistentVolumeClaimFilter: filter,
			TTL:                         metav1.Duration{Duration: o.ttl},
		},
	}
	if o.volumeTimeout > 0 {
		seconds := int64(math.Ceil(o.volumeTimeout.Seconds()))
		snapshot.Spec.VolumeSnapshotTimeoutSeconds = &seconds
	}
	return snapshot, nil
}
