package kubernetesapplicationresource

import (
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/apply"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/reconcile"
)

// session is what is remembered of a resource between passes.
type session struct {
	key reconcile.Key

	// cluster is the one that was delivered to last; nil while it cannot be used. applier is
	// its applier; nil only before the first use.
	cluster *cluster.Cluster
	applier *apply.Applier

	// working means that a job is under way.
	working bool
	// toldBefore is how often the cluster had notified us of a change by others when the job that
	// is under way, or else the last one, began.
	toldBefore int
	// attempted is the digest of what was submitted or deleted last, and result how that went.
	attempted string
	result    submission
	// last is what the last job says is in the cluster: first what it was about to apply, then how it
	// went. The result of a job whose input has changed meanwhile is seen by no pass, so that the
	// status may not tell. It is the only field that jobs use.
	last atomic.Pointer[submission]

	// fight is about what was submitted with the same digest.
	fight reconcile.Fight
	// shownAt is when a changed status of the object was last shown.
	shownAt time.Time
	// retry is for failed jobs, and for looks and corrections that are not due yet.
	retry reconcile.Retry
	// lookups is how often in a row a kind was looked for that no event may announce.
	lookups int
}

// submission is the result of a job in a cluster.
type submission struct {
	// inventory is what is in the cluster, or may be; nil if the job did not get that far.
	inventory []manifest.ID
	// namespace is that of the object; known only if placed is set.
	namespace string
	placed    bool

	problems []manifest.Problem
	warnings []manifest.Problem
	waiting  []manifest.ID
	// unseen: something that is waited for, or that was delivered, cannot be watched.
	unseen bool
	// unannounced: an aggregated API server may come to serve the kind, which no event announces.
	unannounced bool
	// held has the holds of what is delivered; known only if looked is set.
	held   []v1alpha1.Hold
	looked bool
	// corrected: something that somebody else had changed or deleted was put right.
	corrected bool
	// err is why the job could not do anything.
	err error
}

// unwatched schedules another look at the resource after unwatchedInterval, because no event will
// cause one.
func (s *session) unwatched() { s.retry = reconcile.Retry{At: time.Now().Add(unwatchedInterval)} }

// Shortest and longest interval at which a kind that nothing defines is looked for. The interval
// grows, because most of these kinds never come.
const (
	minLookup = 2 * time.Minute
	maxLookup = 30 * time.Minute
)

// unannounced schedules another look at the resource, after an interval that grows each time.
func (s *session) unannounced() {
	pause := min(minLookup<<min(s.lookups, 8), maxLookup)
	s.retry, s.lookups = reconcile.Retry{At: time.Now().Add(pause)}, s.lookups+1
}

func (s *session) succeeded() { s.retry, s.lookups = reconcile.Retry{}, 0 }

// isDue reports whether a job with an input has to be run, or has been and its result has to be
// handled: there was none with that input yet, or what failed is due for another try.
func (s *session) isDue(input string) bool {
	return s.working || s.attempted != input || s.retry.Due(time.Now())
}

// session returns what is remembered of a resource, but nothing of an earlier one of its name.
func (r *Reconciler) session(kar *v1alpha1.KubernetesApplicationResource) *session {
	key := reconcile.KeyOf(kar)
	if found := r.sessions.Get(key.NamespacedName); found != nil && found.key != key {
		r.forget(key.NamespacedName)
	}
	return r.sessions.Of(key.NamespacedName, func() *session { return &session{key: key} })
}

// forget drops everything that is remembered of a resource. What it delivered stays.
func (r *Reconciler) forget(name types.NamespacedName) {
	found := r.sessions.Get(name)
	if found == nil {
		return
	}
	r.jobs.Drop(found.key)
	if found.applier != nil {
		found.applier.Forget(r.owner(name))
	}
	r.told.Forget(name)
	r.kernel.Forget(found.key.UID)
	r.sessions.Drop(name)
	forgetMetrics(name)
}
