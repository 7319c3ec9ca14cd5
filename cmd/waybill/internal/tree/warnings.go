package tree

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"waybill.dev/waybill/cmd/waybill/internal/output"
)

// warnings collects what keeps a tree from being complete. It is safe for concurrent use.
type warnings struct {
	mu    sync.Mutex
	notes map[string]bool
	gaps  map[where]*gap
}

// where is a namespace of a cluster.
type where struct{ cluster, namespace string }

// gap holds the kinds that could not be listed somewhere.
type gap struct {
	forbidden, failed []string
	why               error // of the first that failed
}

func newWarnings() *warnings { return &warnings{notes: map[string]bool{}, gaps: map[where]*gap{}} }

// note adds a warning, once.
func (w *warnings) note(warning string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes[warning] = true
}

// unlisted notes that objects of a kind could not be listed, so that those among them that others
// own are missing.
func (w *warnings) unlisted(in where, kind string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	g := w.gaps[in]
	if g == nil {
		g = &gap{}
		w.gaps[in] = g
	}
	if apierrors.IsForbidden(err) {
		g.forbidden = append(g.forbidden, kind)
		return
	}
	g.failed = append(g.failed, kind)
	g.why = cmp.Or(g.why, err)
}

// all returns the warnings in order: of the kinds that may not be listed in a namespace, one.
func (w *warnings) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := slices.Collect(maps.Keys(w.notes))
	for in, g := range w.gaps {
		place := fmt.Sprintf("in namespace %s of cluster %s", in.namespace, in.cluster)
		if len(g.forbidden) > 0 {
			all = append(all, fmt.Sprintf("what objects own is not complete: you may not list %s %s", output.Enumerate(g.forbidden), place))
		}
		if len(g.failed) > 0 {
			all = append(all, fmt.Sprintf("what objects own is not complete: list %s %s: %s", output.Enumerate(g.failed), place, g.why))
		}
	}
	slices.Sort(all)
	return all
}
