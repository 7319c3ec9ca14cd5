package applicationinstallation

import (
	"math/rand/v2"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/reconcile"
)

// attempts says when to try again what has failed: after a back-off, or when a user requests it.
type attempts struct {
	reconcile.Retry
	// requested is what the annotation reconcile-at was when the last try began.
	requested string
}

// ended records how a try ended. What stalled is not tried again by itself.
func (t *attempts) ended(requested string, err error, backoff func(int) time.Duration) {
	t.requested = requested
	t.Ended(err, backoff)
}

// comparison says when everything is compared with the cluster again, after an interval.
type comparison struct {
	interval time.Duration
	at       time.Time
}

// after returns the end of an interval that starts now, up to a tenth later so that not all
// installations of a cluster are due at once. It returns the zero time if there is no interval.
func after(interval time.Duration) time.Time {
	if interval == 0 {
		return time.Time{}
	}
	return time.Now().Add(interval + time.Duration(rand.Int64N(int64(interval)/10+1)))
}

// deadline is the time within which what was installed must be healthy.
type deadline struct {
	// since is when that was written; zero once it has been healthy, and without wait.
	since time.Time
	// unseen says that the time ran out while the cluster was lost.
	unseen bool
}

// start starts the time for what was just written; there is none without wait.
func (l *deadline) start(o *v1alpha1.HelmDeployOptions) { l.since = awaitedFrom(o) }

// end has nothing awaited any more.
func (l *deadline) end() { l.since = time.Time{} }

// awaitedFrom returns the time from which the health of what was just written is awaited; zero
// without wait.
func awaitedFrom(o *v1alpha1.HelmDeployOptions) time.Time {
	if o == nil || !o.Wait {
		return time.Time{}
	}
	return time.Now()
}

// sinceOf returns a time as a status has it, which is in seconds.
func sinceOf(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	since := metav1.NewTime(t).Rfc3339Copy()
	return &since
}

// leaving is how far an installation that is being deleted is.
type leaving struct {
	// since is when it was first seen that it is, while others depend on it.
	since time.Time
	// begun says that the uninstall has begun.
	begun bool
}
