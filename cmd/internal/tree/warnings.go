package tree

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"waybill.dev/waybill/cmd/internal/output"
)

// warnings collects what keeps a tree from being complete. It is safe for concurrent use.
type warnings struct {
	mu    sync.Mutex
	notes map[string]bool
	gaps  map[where]*gap
}

// where is a namespace of a cluster, or the whole cluster if the namespace is empty.
type where struct{ cluster, namespace string }

// gap holds the kinds that could not be listed somewhere.
type gap struct {
	forbidden, failed map[string]bool
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
	if apierrors.IsForbidden(err) {
		w.forbidden(in, kind)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	g := w.gap(in)
	g.failed[kind] = true
	g.why = cmp.Or(g.why, err)
}

// forbidden notes that objects of a kind may not be listed.
func (w *warnings) forbidden(in where, kind string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gap(in).forbidden[kind] = true
}

// gap returns what is missing somewhere. The caller holds the lock.
func (w *warnings) gap(in where) *gap {
	g := w.gaps[in]
	if g == nil {
		g = &gap{forbidden: map[string]bool{}, failed: map[string]bool{}}
		w.gaps[in] = g
	}
	return g
}

// missing is a part of a warning: what is missing in a cluster, up to the namespace and after it.
type missing struct{ cluster, what, why string }

// all returns the warnings, sorted. Namespaces in which the same kinds could not be listed are one
// warning.
func (w *warnings) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := slices.Collect(maps.Keys(w.notes))
	namespaces := map[missing][]string{}
	for in, g := range w.gaps {
		if len(g.forbidden) > 0 {
			m := missing{cluster: in.cluster, what: "you may not list " + enumerate(g.forbidden)}
			namespaces[m] = append(namespaces[m], in.namespace)
		}
		if len(g.failed) > 0 {
			m := missing{in.cluster, "list " + enumerate(g.failed), ": " + g.why.Error()}
			namespaces[m] = append(namespaces[m], in.namespace)
		}
	}
	for m, names := range namespaces {
		place := "in namespace " + names[0]
		switch {
		case slices.Contains(names, ""):
			place = "in all namespaces"
		case len(names) > 1:
			place = "in the namespaces " + output.Enumerate(names, "namespace")
		}
		all = append(all, fmt.Sprintf("what objects own is not complete: %s %s of cluster %s%s", m.what, place, m.cluster, m.why))
	}
	slices.Sort(all)
	return all
}

func enumerate(kinds map[string]bool) string {
	return output.Enumerate(slices.Collect(maps.Keys(kinds)), "kind")
}
