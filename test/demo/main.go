package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"waybill.dev/waybill/test/env"
)

func main() {
	klog.SetLogger(logr.Discard()) // libraries log for operators, not for an audience
	log.SetLogger(logr.Discard())
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	chapters := story()
	if os.Getenv("SEED") != "" {
		chapters = seedStory()
	}
	err := run(ctx, os.Stdout, chapters, os.Getenv("KEEP") != "")
	env.StopAll()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// run plays a story to w. With keep it then waits until ctx ends, which is not an error.
// Everything that it started keeps running until env.StopAll.
func run(ctx context.Context, w io.Writer, chapters []chapter, keep bool) error {
	s := newStage(ctx, w)
	s.say.printf("Waybill: a hub and its clusters, from nothing, on this machine alone.\n")
	for _, c := range chapters {
		s.say.chapter(c.title, c.text)
		for _, step := range c.steps {
			if err := s.play(ctx, step); err != nil {
				return err
			}
		}
	}
	s.say.summary()
	if keep {
		s.explain(ctx)
		<-ctx.Done()
		s.say.printf("\nStopping.\n")
	}
	return nil
}

// chapter is a part of the story.
type chapter struct {
	title, text string
	steps       []step
}

// step is one thing that must happen.
type step struct {
	title string
	// limit is how long until the demo gives up.
	limit time.Duration
	// sincePush counts the time from the end of the last git push.
	sincePush bool
	run       func(*stage, context.Context) error
}

// play runs one step and prints how long it took, or why it failed.
func (s *stage) play(ctx context.Context, step step) error {
	s.say.begin(step.title)
	started := time.Now()
	limited, cancel := context.WithTimeout(ctx, step.limit)
	defer cancel()
	err := step.run(s, limited)
	if step.sincePush {
		started = s.pushed
	}
	took := time.Since(started)
	switch {
	case err == nil:
		s.say.done(step.title, took, step.sincePush)
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("stopped at: %s", step.title)
	}
	s.say.failed(step.title, took)
	s.diagnose(ctx)
	return fmt.Errorf("%s: %w", step.title, err)
}
