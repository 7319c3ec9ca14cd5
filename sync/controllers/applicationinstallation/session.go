package applicationinstallation

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/reconcile"
	"waybill.dev/waybill/sync/source/git"
)

// jobKey identifies an installation of a cluster; the UID distinguishes it from another of the same
// name.
type jobKey struct {
	cluster types.NamespacedName
	name    types.NamespacedName
	uid     types.UID
}

// session is what is remembered of an installation between passes. Only the pass of the
// installation itself uses it, so it needs no lock; but its jobs write to the inventory.
type session struct {
	// prepared is what was prepared for the digest, until it is acted on.
	prepared *prepared
	// asked is the question of the last look at a moving source, lookErr the error of that look,
	// and look the next one.
	asked   string
	lookErr error
	look    reconcile.Retry
	// revision of a git source that was last installed.
	revision git.Revision

	// restored says that inventory was read back from the status.
	restored bool
	deployed deployed
	// acting is the input of the running action, empty if there is none. toldBefore is how many
	// changes by others the cluster had reported when it, or the last one, began, and requested is
	// what the annotation reconcile-at was then.
	acting     string
	toldBefore int
	requested  string
	// compareAt is when everything is compared with the cluster again, after an interval.
	interval  time.Duration
	compareAt time.Time

	// attempted is the digest that was last acted on, and result the outcome.
	attempted string
	result    acted

	// healthSince is when the result came, and healthDue when the installation fails if it is not
	// healthy by then.
	healthSince time.Time
	healthDue   time.Time
	// uninstalling says that an uninstall has begun.
	uninstalling bool
	// giveUp is why the last install must be rolled back; empty if it must not be.
	giveUp string

	// retry is for failed actions and fetches.
	retry reconcile.Retry
}

// beginUninstall clears, once, what was due: what delayed the install does not delay the uninstall,
// and there is nothing left to look at.
func (s *session) beginUninstall() {
	if !s.uninstalling {
		s.uninstalling, s.retry.At = true, time.Time{}
		s.look.At, s.compareAt, s.healthDue = time.Time{}, time.Time{}, time.Time{}
	}
}

// sessions holds the sessions by UID of the installation.
type sessions struct {
	mu    sync.Mutex
	byUID map[types.UID]*session
}

func newSessions() *sessions { return &sessions{byUID: map[types.UID]*session{}} }

// of returns the session of an installation, and creates it if there is none.
func (s *sessions) of(inst *v1alpha1.ApplicationInstallation) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.byUID[inst.UID]
	if found == nil {
		found = &session{retry: reconcile.Retry{Failures: int(inst.Status.Failures)}}
		s.byUID[inst.UID] = found
	}
	return found
}

func (s *sessions) drop(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byUID, uid)
}
