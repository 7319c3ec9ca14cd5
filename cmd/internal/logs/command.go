package logs

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/complete"
	"waybill.dev/waybill/cmd/internal/kinds"
	"waybill.dev/waybill/cmd/internal/output"
	"waybill.dev/waybill/cmd/internal/tree"
)

const examples = `  # The last lines of all Pods of an Application in a user cluster
  waybill logs application/wordpress -n blog --cluster berlin --tail 20

  # What one container writes, as it comes
  waybill logs installation/web -n team-a --cluster berlin --container web --follow`

// options are the flags of the command.
type options struct {
	env        *cli.Env
	follow     bool
	previous   bool
	timestamps bool
	prefix     bool
	tail       int64
	since      time.Duration
	container  string
	most       int
}

// New returns the command.
func New(env *cli.Env) *cobra.Command {
	o := &options{env: env}
	cmd := &cobra.Command{
		Use:   "logs NAME | KIND/NAME | KIND NAME",
		Short: "Show the logs of the Pods of an Application, or of anything else that has Pods",
		Long: `Show the logs of the Pods that "waybill tree" shows below an object, of all their containers,
each line behind the name of its Pod and container. Control characters are made visible, so that
a log cannot steer the terminal, and lines of more than 64 KiB are broken.

With --follow, lines are printed as they come, also those of containers that start later, until the
command is interrupted. --tail and --since do not apply to what starts later.

An object is looked for in all namespaces unless -n is given; of a KIND/NAME, the one in the
namespace of the kubeconfig comes first. Several that could be meant are an error that lists them.
A container without a log, such as one that waits for its image, is a warning; if there is no other,
the exit code is 2.`,
		Example:           examples,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: complete.References(env),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	flags := cmd.Flags()
	flags.BoolVarP(&o.follow, "follow", "f", false, "Print further lines as they come")
	flags.BoolVarP(&o.previous, "previous", "p", false, "The logs of the containers before their last restart")
	flags.BoolVar(&o.timestamps, "timestamps", false, "Put the time before each line")
	flags.BoolVar(&o.prefix, "prefix", true, "Put the names of the Pod and the container before each line")
	flags.Int64Var(&o.tail, "tail", -1, "How many of the last lines of each container to show; -1 shows all")
	flags.DurationVar(&o.since, "since", 0, "Only lines that are not older, e.g. 5m or 1h; 0 shows all")
	flags.StringVarP(&o.container, "container", "c", "", "Only the containers of this name")
	flags.IntVar(&o.most, "max-log-requests", 20, "How many containers to follow at a time")
	return cmd
}

func (o *options) check() error {
	switch {
	case o.tail < -1:
		return errors.New("--tail must be -1 or more")
	case o.since < 0:
		return errors.New("--since must be 0 or more")
	case o.follow && o.previous:
		return errors.New("--follow and --previous exclude each other: a container that has ended writes no more")
	case o.most < 1:
		return errors.New("--max-log-requests must be 1 or more")
	}
	return nil
}

func (o *options) run(ctx context.Context, args []string) error {
	if err := o.check(); err != nil {
		return err
	}
	target, err := o.env.Target(ctx)
	if err != nil {
		return err
	}
	root, err := kinds.One(ctx, o.env, target, args)
	if err != nil {
		return err
	}
	grown, err := tree.Grow(ctx, target, root, 0)
	if err != nil {
		return err
	}
	for _, warning := range grown.Warnings {
		o.env.Warnf("%s", warning)
	}
	members := grown.Members()
	found, err := streams(ctx, members, o.container)
	if err != nil {
		return err
	}
	hasPods := slices.ContainsFunc(members, isPod)
	switch {
	case len(found) == 0 && o.container != "" && hasPods:
		return fmt.Errorf("no Pod of %s has a container %s", kinds.Describe(root), o.container)
	case o.follow && len(found) > o.most:
		return fmt.Errorf("%s has %d containers, and --max-log-requests is %d: name one with --container, or raise it", kinds.Describe(root), len(found), o.most)
	case o.follow:
		return o.followLogs(ctx, target, root, members, found)
	case len(found) == 0:
		fmt.Fprintf(o.env.ErrOut, "No Pods found for %s: `waybill tree` shows what there is\n", kinds.Describe(root))
		return nil
	}
	return o.print(ctx, found)
}

// print prints the logs one after the other. A log that cannot be read is a warning; if none can, print returns an error.
func (o *options) print(ctx context.Context, found []stream) error {
	to, options, prefix := &lines{w: o.env.Out}, o.logOptions(), prefixes{shown: o.prefix}
	prefix.add(found)
	failures := 0
	for _, s := range found {
		err := s.copyTo(ctx, to, options, prefix.of(s))
		switch {
		case ctx.Err() != nil:
			return nil // the user has seen enough
		case err == nil:
			continue
		}
		err = fmt.Errorf("read the log of %s: %w", s, err)
		if len(found) == 1 {
			return err
		}
		failures++
		o.env.Warnf("%s", err)
	}
	if failures == len(found) {
		return fmt.Errorf("none of the %d logs could be read", failures)
	}
	return nil
}

// logOptions returns what the API server is asked for.
func (o *options) logOptions() *corev1.PodLogOptions {
	options := &corev1.PodLogOptions{Follow: o.follow, Previous: o.previous, Timestamps: o.timestamps}
	if o.tail >= 0 {
		options.TailLines = &o.tail
	}
	if o.since > 0 {
		seconds := int64(math.Ceil(o.since.Seconds()))
		options.SinceSeconds = &seconds
	}
	return options
}

// prefixes are what stands before the lines of each log: what kubectl writes, and before that the namespace and the
// cluster once there are several.
type prefixes struct {
	shown                bool // --prefix
	first                *stream
	clusters, namespaces bool // there are several
}

// add takes notice of logs.
func (p *prefixes) add(logs []stream) {
	for _, s := range logs {
		if p.first == nil {
			p.first = &s
		}
		p.clusters = p.clusters || s.cluster != p.first.cluster
		p.namespaces = p.namespaces || s.pod.Namespace != p.first.pod.Namespace
	}
}

// of returns the prefix of the lines of a log.
func (p *prefixes) of(s stream) string {
	if !p.shown {
		return ""
	}
	text := fmt.Sprintf("pod/%s/%s", s.pod.Name, s.container)
	if p.namespaces || p.clusters {
		text = s.pod.Namespace + "/" + text
	}
	if p.clusters {
		text = s.cluster + "/" + text
	}
	return output.Escape("[" + text + "] ")
}
