package applicationinstallation

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/source/git"
)

// jobKey identifies an installation of a cluster; the UID keeps one apart from another of
// the same name.
type jobKey struct {
	cluster types.NamespacedName
	name    types.NamespacedName
	uid     types.UID
}

// session is what is remembered of an installation between passes. Only the pass of the
// installation itself touches it, so it needs no lock; but its jobs write to the inventory.
type session struct {
	// prepared is what the digest was prepared to, until it was acted on.
	prepared *prepared
	// asked is what a moving source was last looked at with, lookErr how that ended, and nextLook
	// when it is looked at again.
	asked        string
	lookErr      error
	lookFailures int
	nextLook     time.Time
	// revision of a git source is that which was last installed.
	revision git.Revision

	// restored says that inventory was read back from the status.
	restored  bool
	inventory ledger
	// acting is the input of the action that is under way, empty while there is none; toldBefore is
	// how often the cluster had told of a change by others when it, or the last one, began, and
	// requested the annotation reconcile-at then.
	acting     string
	toldBefore int
	requested  string
	// compareAt is when everything is compared with the cluster again, after an interval.
	interval  time.Duration
	compareAt time.Time

	// attempted is the digest that was last acted on, and result how that went.
	attempted string
	result    acted

	// healthSince is when the result came, and healthDue when it fails for want of health.
	healthSince time.Time
	healthDue   time.Time
	// uninstalling says that an uninstall was begun.
	uninstalling bool
	// giveUp is why the last install is to be rolled back; empty where it is not.
	giveUp string

	// failures in a row, and when to try again.
	failures int
	retryAt  time.Time
}

func (s *session) failed(backoff func(int) time.Duration) {
	s.failures++
	s.retryAt = time.Now().Add(backoff(s.failures))
}

func (s *session) succeeded() { s.failures, s.retryAt = 0, time.Time{} }

// beginUninstall forgets, once, what was due: what held up the install does not hold up the
// uninstall, and there is nothing to look at any more.
func (s *session) beginUninstall() {
	if !s.uninstalling {
		s.uninstalling, s.retryAt = true, time.Time{}
		s.nextLook, s.compareAt, s.healthDue = time.Time{}, time.Time{}, time.Time{}
	}
}

// sessions by UID of the installation.
type sessions struct {
	mu    sync.Mutex
	byUID map[types.UID]*session
}

func newSessions() *sessions { return &sessions{byUID: map[types.UID]*session{}} }

// of returns the session of an installation, a new one where there is none.
func (s *sessions) of(inst *v1alpha1.ApplicationInstallation) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.byUID[inst.UID]
	if found == nil {
		found = &session{failures: int(inst.Status.Failures)}
		s.byUID[inst.UID] = found
	}
	return found
}

func (s *sessions) drop(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byUID, uid)
}
