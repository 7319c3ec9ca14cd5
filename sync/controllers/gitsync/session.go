package gitsync

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/apply"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/source/git"
)

// sessionKey identifies a GitSync; the UID keeps one apart from another of the same name.
type sessionKey struct {
	types.NamespacedName
	uid types.UID
}

// targetKey identifies the delivery of a GitSync to one cluster, by the cluster's name.
type targetKey struct {
	sessionKey
	cluster string
}

// toldKey is a GitSync, by name, and a cluster that it delivers to.
type toldKey struct {
	types.NamespacedName
	cluster string
}

// session is what is remembered of a GitSync between passes. Only the pass of the GitSync
// itself touches it, so it needs no lock.
type session struct {
	key sessionKey

	// restored says that inventory and targets were read back from the status.
	restored bool
	// inventory is what was delivered when no delivery was under way; intent is what those that
	// are have added to it.
	inventory []manifest.ID
	intent    *intent

	// asked is what the repository was last looked at with, and lookErr how that ended.
	asked        string
	lookErr      error
	lookFailures int
	// lookedAt is the now of the pass that the last look ended in.
	lookedAt time.Time
	// nextLook is when the interval, or the back-off of lookErr, is over.
	nextLook time.Time

	// revision is the newest that was seen; digest identifies what it renders to.
	revision git.Revision
	digest   string
	// rendered is kept only until it was handed to every cluster.
	rendered *rendered
	// count and problems are those of what was rendered last.
	count    int
	problems []manifest.Problem

	// targets by name of the cluster; empty for the cluster of the GitSync.
	targets map[string]*target

	// sickSince is since when objects of sickDigest are not healthy.
	sickSince  time.Time
	sickDigest string

	// shown is when it was last shown how far the clusters are while some are at work, and
	// showDue when to show it again; zero where there is nothing new.
	shown, showDue time.Time

	// failures in a row of deliveries, and when to try again.
	failures int
	retryAt  time.Time
}

// rendered is what a revision holds.
type rendered struct {
	objects  []manifest.Object
	problems []manifest.Problem
}

// target is one cluster that a GitSync delivers to.
type target struct {
	name string
	// cluster under the identity that is impersonated, whose applier is held; nil until it was
	// first there.
	cluster *cluster.Cluster
	// applier of the cluster; nil while the cluster cannot be used, and then err says why.
	applier *apply.Applier
	err     error
	// leaving says that the cluster is no longer selected.
	leaving bool
	// attempted is the digest that was last handed to the cluster, and result how that went.
	attempted string
	result    apply.Result
	// tried is when the last delivery began.
	tried time.Time
	// revision that was last delivered without a problem.
	revision string
	// told is how often the cluster has told of a change by others; toldBefore is that count
	// when the delivery that is under way, or was the last, began.
	told, toldBefore int
	// delivering says that a delivery is under way.
	delivering bool
}

// sessions by GitSync.
type sessions struct {
	mu    sync.Mutex
	byKey map[sessionKey]*session
}

func newSessions() *sessions { return &sessions{byKey: map[sessionKey]*session{}} }

func keyOf(gs *v1alpha1.GitSync) sessionKey {
	return sessionKey{types.NamespacedName{Namespace: gs.Namespace, Name: gs.Name}, gs.UID}
}

// of returns the session of a GitSync, a new one where there is none.
func (s *sessions) of(gs *v1alpha1.GitSync) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := keyOf(gs)
	found := s.byKey[key]
	if found == nil {
		found = &session{key: key, targets: map[string]*target{}}
		s.byKey[key] = found
	}
	return found
}

func (s *sessions) drop(key sessionKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byKey, key)
}

// failed records a failed delivery and says when to try again.
func (s *session) failed(backoff func(int) time.Duration) {
	s.failures++
	s.retryAt = time.Now().Add(backoff(s.failures))
}

// succeeded records that nothing is left to retry.
func (s *session) succeeded() {
	s.failures, s.retryAt = 0, time.Time{}
}

// retryDue says whether a delivery that failed is to be tried again: once each time that is due,
// however long other clusters take.
func (s *scope) retryDue(t *target) bool {
	failed := t.result.Err != nil || len(t.result.Problems) > 0
	return failed && !s.session.retryAt.After(s.now) && t.tried.Before(s.session.retryAt)
}

// unwatchedDue says whether a cluster is to be looked at because there is something in it that
// nobody tells of: once after each look at the repository.
func (s *scope) unwatchedDue(t *target) bool {
	return (t.result.Unseen || t.result.Unannounced) && t.tried.Before(s.session.lookedAt)
}
