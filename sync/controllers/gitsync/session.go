package gitsync

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/apply"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/reconcile"
)

// targetKey identifies the delivery of a GitSync to one cluster, by the cluster's name.
type targetKey struct {
	reconcile.Key
	cluster string
}

// toldKey identifies a GitSync, by name, and a cluster that it delivers to.
type toldKey struct {
	types.NamespacedName
	cluster string
}

// session is the state of a GitSync that is kept between passes.
type session struct {
	key reconcile.Key

	// restored says that inventory and targets were read back from the status.
	restored bool
	// inventory is what had been delivered when no delivery was under way; intent adds what the
	// current deliveries have declared.
	inventory []manifest.ID
	intent    *intent

	// asked is the question that the repository was last asked, and lookErr the result.
	asked   string
	lookErr error
	// lookedAt is the now of the pass in which the last check of the repository ended.
	lookedAt time.Time
	// look is the next check: when the interval, or the back-off of lookErr, is over.
	look reconcile.Retry

	// waitsUntil is when the conditions begin to say that the git server is waited for; zero if it is
	// not.
	waitsUntil time.Time
	// resumed says that it was tried to continue with the revision that the status names.
	resumed bool

	// source has the newest revision that could be rendered; digest identifies what it renders to.
	source source
	digest string
	// absent says that the mirror has lost the source.
	absent bool
	// rendered is kept only until it has been handed to every cluster.
	rendered *rendered
	// count, problems and ignored are those of the last rendering.
	count    int
	problems []manifest.Problem
	ignored  string

	// targets by name of the cluster; the name is empty for the GitSync's own cluster.
	targets map[string]*target

	// uncollected says that a job has ended or was dropped, or a cluster was forgotten, since the
	// results of all clusters were last collected.
	uncollected bool

	// sickSince is the time since which objects of sickDigest are not healthy.
	sickSince  time.Time
	sickDigest string

	// shown is when the clusters' progress was last written while some are at work, and showDue is
	// when to write it again; zero if there is nothing new.
	shown, showDue time.Time

	// reported is the digest that the conditions were last about; empty since the start.
	reported string
	// told is how far the deliveries are as the conditions last said, since toldAt; tellDue is when to
	// write it again, and zero if there is nothing new.
	told            string
	toldAt, tellDue time.Time

	// retry is for failed deliveries.
	retry reconcile.Retry
}

// rendered is the content of a revision.
type rendered struct {
	objects  []manifest.Object
	problems []manifest.Problem
	// ignored says what of the objects has no effect; empty for nothing.
	ignored string
}

// target is one cluster that a GitSync delivers to.
type target struct {
	name string
	// uid identifies the cluster, whatever its name; empty until it was first available.
	uid string
	// base is the cluster; nil until it was first available.
	base *cluster.Cluster
	// cluster is the cluster under the impersonated identity, whose applier is held; nil until the
	// cluster was first available.
	cluster *cluster.Cluster
	// applier of the cluster; nil while the cluster cannot be used, in which case err says why.
	applier *apply.Applier
	err     error
	// leaving says that the cluster is no longer selected.
	leaving bool
	// attempted is the digest that was last handed to the cluster, or how everything was last taken
	// out of it, and result the outcome.
	attempted string
	result    apply.Result
	// ended says that this process has delivered to the cluster: result is the outcome.
	ended bool
	// tried is when the last delivery began.
	tried time.Time
	// progress of what is delivered; nil until there was something.
	progress *progress
	// revision is the last one that was delivered without a problem.
	revision string
	// applied identifies what the last delivery left in the cluster, as the status keeps it; empty if that is
	// not known.
	applied string
	// delivered is the digest that the last delivery has brought to the cluster without a problem; empty
	// if there was one. While this process has delivered nothing, restored is the generation for which
	// the status said so of revision; zero if it did not.
	delivered string
	restored  int64
	// told is how many changes by others the cluster has reported; toldBefore is that count at the
	// start of the current or last delivery.
	told, toldBefore int
	// arrivedBefore is how many definitions had arrived in the cluster at the start of the current or
	// last delivery.
	arrivedBefore int
	// fights has what others keep changing in the cluster, and driftDue is when that is to be put
	// right again; zero if it is not put off.
	fights   fights
	driftDue time.Time
	// delivering says that a delivery is under way.
	delivering bool
}

func newTarget(name, revision string) *target {
	return &target{name: name, revision: revision, fights: fights{}}
}

// session returns what is remembered of a GitSync.
func (r *Reconciler) session(gs *v1alpha1.GitSync) *session {
	key := reconcile.KeyOf(gs)
	return r.sessions.Of(key, func() *session { return &session{key: key, targets: map[string]*target{}} })
}

// retryDue reports whether a failed delivery must be retried: once each time that is due, however
// long other clusters take.
func (s *scope) retryDue(t *target) bool {
	failed := t.result.Err != nil || len(t.result.Problems) > 0
	due := s.session.retry.At
	return failed && !due.After(s.now) && t.tried.Before(due)
}

// unwatchedDue reports whether a cluster must be checked because it has objects whose changes are
// not announced, or the ends of whose holds are not: once after each check of the repository.
func (s *scope) unwatchedDue(t *target) bool {
	return (t.result.Unseen || t.result.Unannounced) && t.tried.Before(s.session.lookedAt)
}
