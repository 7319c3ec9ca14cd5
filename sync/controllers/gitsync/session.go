package gitsync

import (
	"maps"
	"slices"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/delivery"
	"waybill.dev/waybill/sync/reconcile"
	"waybill.dev/waybill/sync/source/subscription"
)

// session is the state of a GitSync that is kept between passes.
type session struct {
	key reconcile.Key
	// repository asks for the newest revision.
	repository subscription.Subscription[reconcile.Key, loaded]
	// desired is what the clusters are to have, record what may be in them, and sick since when they are not
	// healthy.
	desired desired
	record  record
	sick    sickness
	// targets by name of the cluster; the name is empty for the GitSync's own cluster. It is nil until restore
	// has read them back from the status.
	targets map[string]*target
	// reported is the digest that the conditions were last about; empty since the start.
	reported string
}

// target is one cluster that a GitSync delivers to.
type target struct {
	name string
	// uid identifies the cluster, whatever its name; empty until it was first available.
	uid string
	// delivery keeps the objects there under the identity that the GitSync acts as, and state is what it
	// says in this pass.
	delivery *delivery.Delivery
	state    delivery.State
	// leaving says that the cluster is no longer selected.
	leaving bool
	// achieved is what deliveries have left there.
	achieved achieved
	// definitions tells when one arrives that an installation was refused for.
	definitions awaited
}

// achieved is what deliveries have left in a cluster.
type achieved struct {
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
}

// outdated notes that the cluster may not have what was delivered to it.
func (a *achieved) outdated() { a.delivered, a.restored = "", 0 }

func (r *Reconciler) newTarget(s *scope, name string, was achieved) *target {
	return &target{
		name: name, achieved: was, delivery: r.deliveries.New(r.owner(s.gs)),
		definitions: awaited{arrivals: r.arrivals, name: s.session.key.NamespacedName},
	}
}

// session returns what is remembered of a GitSync.
func (r *Reconciler) session(gs *v1alpha1.GitSync) *session {
	key := reconcile.KeyOf(gs)
	return r.sessions.Of(key, func() *session { return &session{key: key, repository: r.looks.New(key)} })
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
