package output

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Step is how far something is that is followed step by step.
type Step struct {
	// Phase that it is at, empty before the first, and what is said of it.
	Phase, Message string
	// Ended is true once there is nothing more to follow.
	Ended bool
	// Came returns what a phase came to, as far as it is known; empty if there is nothing to say. nil says
	// nothing of any.
	Came func(phase string) string
}

// Steps prints a line for each phase that is over. In a terminal, the one that lasts is shown below
// them.
type Steps struct {
	out, errOut io.Writer
	title       string
	begin       time.Time
	phase       string
	since       time.Time
	spinner     *Progress // nil while nothing lasts
}

// NewSteps returns steps of what title names. The caller must call Stop.
func NewSteps(out, errOut io.Writer, title string) *Steps {
	return &Steps{out: out, errOut: errOut, title: title, begin: time.Now()}
}

// See takes notice of how far it is.
func (s *Steps) See(now Step) {
	if now.Phase != s.phase {
		s.pass(now)
	}
	if now.Ended {
		s.Stop()
		return
	}
	if s.spinner == nil {
		s.spinner = NewProgress(s.errOut, s.title)
	}
	s.spinner.Update(Joined(now.Phase, now.Message))
}

// pass prints the phase that is over, with what it came to as is known now.
func (s *Steps) pass(now Step) {
	s.Stop()
	at := time.Now()
	if s.phase != "" {
		came := ""
		if now.Came != nil {
			came = now.Came(s.phase)
		}
		line := fmt.Sprintf("  %-12s %8s  %s", s.phase, Short(at.Sub(s.since)), Escape(came))
		fmt.Fprintln(s.out, strings.TrimRight(line, " "))
	}
	s.phase, s.since = now.Phase, at
}

// Stop clears what is shown below the lines.
func (s *Steps) Stop() {
	if s.spinner != nil {
		s.spinner.Stop()
		s.spinner = nil
	}
}

// Finish prints what it came to.
func (s *Steps) Finish(result string, succeeded bool) {
	w := s.out
	if !succeeded {
		w = s.errOut
	}
	fmt.Fprintf(w, "%s: %s (%s)\n", s.title, Escape(result), Short(time.Since(s.begin)))
}

// Joined returns those of the parts that are not empty, with colons between them.
func Joined(parts ...string) string {
	var some []string
	for _, part := range parts {
		if part != "" {
			some = append(some, part)
		}
	}
	return strings.Join(some, ": ")
}

// Short rounds a duration to what people read.
func Short(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
