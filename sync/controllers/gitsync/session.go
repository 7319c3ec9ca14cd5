package gitsync

import (
	"maps"
	"slices"
	"time"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/deliver/delivery"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/reconcile"
	"waybill.dev/waybill/sync/source/subscription"
)

// session is the state of a GitSync that is kept between passes.
type session struct {
	key reconcile.Key

	// restored says that inventory and targets were read back from the status.
	restored bool
	// inventory is what had been delivered when no delivery was under way; intent adds what the
	// current deliveries have declared.
	inventory []manifest.ID
	intent    *intent

	// repository asks for the newest revision.
	repository subscription.Subscription[reconcile.Key, loaded]
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

	// reported is the digest that the conditions were last about; empty since the start.
	reported string
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
	// base is the cluster as Waybill itself sees it; nil until it was first available.
	base *cluster.Cluster
	// delivery keeps the objects there under the identity that the GitSync acts as, and state is what it
	// says in this pass.
	delivery *delivery.Delivery
	state    delivery.State
	// leaving says that the cluster is no longer selected.
	leaving bool
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
	// arrivedBefore is how many definitions had arrived in the cluster at the start of the last delivery.
	arrivedBefore int
}

func (r *Reconciler) newTarget(s *scope, name, revision string) *target {
	return &target{name: name, revision: revision, delivery: r.deliveries.New(s.apply)}
}

// session returns what is remembered of a GitSync.
func (r *Reconciler) session(gs *v1alpha1.GitSync) *session {
	key := reconcile.KeyOf(gs)
	return r.sessions.Of(key, func() *session {
		return &session{key: key, repository: r.looks.New(key), targets: map[string]*target{}}
	})
}

// targets returns the targets sorted by name, so that everything that lists them is stable.
func (s *scope) targets() []*target {
	sorted := make([]*target, 0, len(s.session.targets))
	for _, name := range slices.Sorted(maps.Keys(s.session.targets)) {
		sorted = append(sorted, s.session.targets[name])
	}
	return sorted
}

// prefix says, to begin a message, which cluster it is about.
func (t *target) prefix() string {
	if t.name == "" {
		return ""
	}
	return "cluster " + t.name + ": "
}
