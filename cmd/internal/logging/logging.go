package logging

import (
	"bytes"
	"log"

	"github.com/fluxcd/pkg/runtime/logger"
	"github.com/go-logr/logr"
)

// Setup has everything in this process log as the options say: our own code, the Kubernetes
// libraries, and those that know only Go's standard log, Helm's among them. The latter are
// shown at level debug.
func Setup(o logger.Options) {
	l := logger.NewLogger(o)
	logger.SetLogger(l)
	log.SetFlags(0)
	log.SetOutput(&Writer{Log: l.WithName("library").V(1)})
}

// Writer is what Go's standard log writes to, a line at a time. It leaves out what may be a
// secret: Helm prints the values of a chart in brackets, and the words of its templates.
type Writer struct {
	// Log receives the lines.
	Log logr.Logger
}

// fromTemplates begins lines whose words are those of a template. They are in the error that
// the template causes, too.
var fromTemplates = []byte("[INFO]")

// Write logs a line. It never fails.
func (w *Writer) Write(line []byte) (int, error) {
	text := bytes.TrimSpace(line)
	if len(text) == 0 || bytes.HasPrefix(text, fromTemplates) {
		return len(line), nil
	}
	message, _, cut := bytes.Cut(text, []byte(" ("))
	if cut {
		message = append(bytes.Clone(message), " (...)"...)
	}
	w.Log.Info(string(message))
	return len(line), nil
}
