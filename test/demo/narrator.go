package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// Escape codes for terminals.
const (
	bold      = "\x1b[1m"
	dim       = "\x1b[2m"
	green     = "\x1b[32m"
	red       = "\x1b[31m"
	reset     = "\x1b[0m"
	eraseLine = "\r\x1b[K"
)

// narrator tells the story. On a terminal it uses colours and shows the current step; elsewhere it
// writes plain lines.
type narrator struct {
	w       io.Writer
	tty     bool
	started time.Time
	pending string // the current step, shown on a terminal's last line
	results []result
}

// result is a line of the summary.
type result struct {
	chapter   bool
	title     string
	took      time.Duration
	sincePush bool
}

func newNarrator(w io.Writer) *narrator {
	n := &narrator{w: w, started: time.Now()}
	if file, ok := w.(*os.File); ok {
		n.tty = term.IsTerminal(int(file.Fd())) && os.Getenv("NO_COLOR") == ""
	}
	return n
}

// printf writes text above the line of the current step.
func (n *narrator) printf(format string, args ...any) {
	if n.tty && n.pending != "" {
		fmt.Fprint(n.w, eraseLine)
	}
	fmt.Fprintf(n.w, format, args...)
	n.show()
}

func (n *narrator) show() {
	if n.tty && n.pending != "" {
		fmt.Fprint(n.w, n.style(dim, "  … "+n.pending))
	}
}

func (n *narrator) style(code, text string) string {
	if !n.tty {
		return text
	}
	return code + text + reset
}

func (n *narrator) chapter(title, text string) {
	n.results = append(n.results, result{chapter: true, title: title})
	n.printf("\n%s\n", n.style(bold, title))
	if text != "" {
		n.printf("%s\n", indent(text))
	}
}

// command shows what a user would type.
func (n *narrator) command(line string) { n.printf("  %s\n", n.style(dim, "$ "+line)) }

// output shows what a command printed.
func (n *narrator) output(text string) {
	if text = strings.TrimRight(text, "\n"); text != "" {
		n.printf("%s\n", indent(indent(text)))
	}
}

func (n *narrator) begin(title string) {
	n.pending = title
	n.show()
}

func (n *narrator) end(sign, title string, took time.Duration, sincePush bool) {
	n.pending = ""
	if n.tty {
		fmt.Fprint(n.w, eraseLine)
	}
	n.printf("  %s %s\n", sign, line(title, took, sincePush))
}

func (n *narrator) done(title string, took time.Duration, sincePush bool) {
	n.results = append(n.results, result{title: title, took: took, sincePush: sincePush})
	n.end(n.style(green, "✓"), title, took, sincePush)
}

func (n *narrator) failed(title string, took time.Duration) {
	n.end(n.style(red, "✗"), title, took, false)
}

// line returns a title and, in its own column, how long it took.
func line(title string, took time.Duration, sincePush bool) string {
	text := fmt.Sprintf("%-64s %8s", title, seconds(took))
	if sincePush {
		text += " after the push"
	}
	return text
}

// seconds formats a duration for people.
func seconds(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// summary repeats every step in a table.
func (n *narrator) summary() {
	n.printf("\n%s\n", n.style(bold, "Summary"))
	for _, r := range n.results {
		if r.chapter {
			n.printf("\n  %s\n", r.title)
			continue
		}
		n.printf("    %s\n", line(r.title, r.took, r.sincePush))
	}
	n.printf("\n  All of it took %s.\n", seconds(time.Since(n.started)))
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(text, "\n", "\n  ")
}
