package output

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"k8s.io/cli-runtime/pkg/printers"
)

// Progress shows on one line of a terminal what is being waited for. If the writer is not a
// terminal, it writes nothing, since logs should hold only results.
type Progress struct {
	w     io.Writer
	title string

	mu      sync.Mutex
	message string
	stop    chan struct{}
	stopped sync.WaitGroup
}

// frames of the spinner, one per tick.
var frames = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

const (
	tick     = 100 * time.Millisecond
	maxWidth = 76 // runes; a line that wraps cannot be overwritten
)

// NewProgress starts to show title. The caller must call Stop.
func NewProgress(w io.Writer, title string) *Progress {
	p := &Progress{w: w, title: title, stop: make(chan struct{})}
	if printers.IsTerminal(w) {
		p.stopped.Go(p.animate)
	}
	return p
}

// Update sets the text after the title.
func (p *Progress) Update(message string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.message = message
}

// Stop clears the line.
func (p *Progress) Stop() {
	close(p.stop)
	p.stopped.Wait()
}

func (p *Progress) animate() {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for i := 0; ; i++ {
		fmt.Fprintf(p.w, "\r%c %s\x1b[K", frames[i%len(frames)], p.line())
		select {
		case <-p.stop:
			fmt.Fprint(p.w, "\r\x1b[K")
			return
		case <-ticker.C:
		}
	}
}

func (p *Progress) line() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	line := p.title
	if p.message != "" {
		line += ": " + p.message
	}
	line = printers.EscapeTerminal(strings.ReplaceAll(line, "\n", " "))
	if runes := []rune(line); len(runes) > maxWidth {
		return string(runes[:maxWidth-1]) + "…"
	}
	return line
}
