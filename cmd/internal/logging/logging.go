package logging

import (
	"bytes"
	"context"
	"log"
	"strings"
	"sync"

	"github.com/fluxcd/pkg/runtime/logger"
	"github.com/go-logr/logr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// Setup makes everything in this process log as the options say: our own code, the Kubernetes
// libraries, and libraries that use Go's standard log, such as Helm. The latter are logged at level
// debug. The first call in a process counts, and has to come before anything logs: the libraries read
// where they log to without a lock.
func Setup(o logger.Options) {
	once.Do(func() { setup(o) })
}

var once sync.Once

func setup(o logger.Options) {
	l := logger.NewLogger(o)
	logger.SetLogger(l)
	log.SetFlags(0)
	log.SetOutput(&Writer{Log: l.WithName("library").V(1)})
	utilruntime.ErrorHandlers = quieter(utilruntime.ErrorHandlers, l.WithName("library").V(1))
}

// eachVersion begins what the cache of discovery says about every version of every API group, which may be
// thousands, while a cluster does not answer or sends too much. What asks for discovery gets the error as
// well, and the status of the KubernetesCluster says it once.
const eachVersion = "couldn't get resource list for "

// quieter returns handlers that leave that to the debug log.
func quieter(handlers []utilruntime.ErrorHandler, debug logr.Logger) []utilruntime.ErrorHandler {
	return []utilruntime.ErrorHandler{func(ctx context.Context, err error, msg string, keysAndValues ...any) {
		if err != nil && strings.HasPrefix(err.Error(), eachVersion) {
			debug.Info(err.Error())
			return
		}
		for _, handle := range handlers {
			handle(ctx, err, msg, keysAndValues...)
		}
	}}
}

// Writer receives the output of Go's standard log, line by line. It leaves out what may be a
// secret: Helm prints the values of a chart in brackets, and the words of its templates.
type Writer struct {
	// Log receives the lines.
	Log logr.Logger
}

// fromTemplates begins lines whose words come from a template. They are also in the error that the
// template causes.
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
