package kubernetesapplication

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/controllers/kubernetesapplication/placement"
	"waybill.dev/waybill/sync/excerpt"
	"waybill.dev/waybill/sync/keyed"
	"waybill.dev/waybill/sync/reconcile"
)

// reportMisfit reports why the application fits nowhere, unless another process is to do that.
//
// Several processes may serve clusters of one namespace, and each knows more about its own. So that
// they do not overwrite each other's texts, only one reports at once: the one that serves the first
// of the clusters that the selector matches. If it does not, because it is down or because no
// process serves that cluster, another process does after some time, and keeps its text up to date.
func (r *Reconciler) reportMisfit(s *scope, f found, fit error) {
	again, misfit := f.misfit(fit)
	if wait, never := r.turn(s, f, misfit); never || wait > 0 {
		s.skip, s.requeueAfter = true, wait
		if wait == 0 || again > 0 && again < wait {
			s.requeueAfter = again
		}
		return
	}
	r.reports.made(s.key, misfit.Error())
	s.considered = f.considered()
	s.unplaced = reconcile.RetryAfter(misfit, again)
}

// misfit returns why the application fits nowhere, as far as is known here, and after how long to
// look again; zero if an event will say when.
func (f found) misfit(fit error) (again time.Duration, misfit error) {
	if len(f.matching) > 0 && len(f.surveys) == 0 {
		return 0, reconcile.Waiting(v1alpha1.ClusterNotServedReason, 0,
			"no waybill-sync seems to serve the clusters that the selector matches (%s): start one whose --cluster-selector matches their labels, or correct their labels",
			excerpt.Names(f.matching, shown))
	}
	if len(f.elsewhere) > 0 {
		fit = fmt.Errorf("%w; not served by this waybill-sync, and chosen by no other: %s", fit, excerpt.Names(f.elsewhere, shown))
	}
	if fitError := (*placement.FitError)(nil); errors.As(fit, &fitError) && fitError.Has(placement.Unanswered) {
		again = retryUnanswered
	}
	return again, reconcile.Waiting(v1alpha1.NoClusterFitsReason, 0, "%w", fit)
}

// turn returns after how long this process is to report a misfit; never means that another process
// keeps the report up to date.
func (r *Reconciler) turn(s *scope, f found, misfit error) (wait time.Duration, never bool) {
	switch {
	case len(f.matching) == 0: // every process says the same
		return 0, false
	case f.surveys[f.matching[0]] != nil:
		if len(f.elsewhere) == 0 {
			return 0, false
		}
		// Other processes may be about to choose a cluster.
		return max(time.Until(s.app.CreationTimestamp.Add(warmUp)), time.Until(r.started().Add(warmUp)), 0), false
	case f.reported(s.app, misfit, r.reports.last(s.key)):
		r.reports.seen(s.key)
		return 0, true
	default:
		return max(time.Until(r.reports.missing(s.key).Add(waitForReport)), 0), false
	}
}

// reported reports whether the status of the application says why it fits nowhere, as of now. last
// is what this process reported last.
func (f found) reported(app *v1alpha1.KubernetesApplication, misfit error, last string) bool {
	ready, status := conditions.Get(app, v1alpha1.ReadyCondition), app.Status
	requested := app.Annotations[v1alpha1.ReconcileAtAnnotation]
	switch {
	case ready == nil, status.ObservedGeneration != app.Generation, requested != "" && status.LastHandledReconcileAt != requested:
		return false
	case ready.Message == misfit.Error():
		return true
	case ready.Message == last, ready.Reason == v1alpha1.ClusterNotServedReason:
		return false // any process may correct it
	case ready.Reason == v1alpha1.NoClusterFitsReason:
		// If not, it is of the time before labels changed.
		return slices.Contains(f.matching, status.ConsideredCluster)
	default:
		return true
	}
}

// considered returns the first of the clusters that the selector matches and that this process serves; empty if it
// serves none of them.
func (f found) considered() string {
	for _, name := range f.matching {
		if f.surveys[name] != nil {
			return name
		}
	}
	return ""
}

// reports records what this process has reported of applications that fit nowhere.
type reports struct {
	of keyed.Map[types.NamespacedName, report]
}

type report struct {
	// text is what was reported last; empty for nothing.
	text string
	// missing is since when a report of another process is missing; zero if it is not.
	missing time.Time
}

// made records a report of this process.
func (r *reports) made(app types.NamespacedName, text string) { r.of.Put(app, report{text: text}) }

func (r *reports) last(app types.NamespacedName) string { return r.of.Get(app).text }

// seen records that no report is missing.
func (r *reports) seen(app types.NamespacedName) {
	r.of.Change(app, func(one report) (report, bool) { return report{text: one.text}, one.text != "" })
}

// missing records that a report is missing, and returns since when.
func (r *reports) missing(app types.NamespacedName) (since time.Time) {
	r.of.Change(app, func(one report) (report, bool) {
		if one.missing.IsZero() {
			one.missing = time.Now()
		}
		since = one.missing
		return one, true
	})
	return since
}

// leave drops an application that is gone, or placed.
func (r *reports) leave(app types.NamespacedName) { r.of.Drop(app) }
