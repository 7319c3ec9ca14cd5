package release

import (
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"
)

// Action is what is done next about a release.
type Action string

const (
	// ActionNone: the release is as it is wanted.
	ActionNone Action = "None"
	// ActionInstall makes the first revision, or takes the place of an install that never succeeded.
	ActionInstall Action = "Install"
	// ActionUpgrade makes another revision.
	ActionUpgrade Action = "Upgrade"
	// ActionUnlock ends a revision that was left pending, so that something else can be done.
	ActionUnlock Action = "Unlock"
	// ActionFinishUninstall ends an uninstall that was broken off.
	ActionFinishUninstall Action = "FinishUninstall"
	// ActionRefuse: the release is somebody else's.
	ActionRefuse Action = "Refuse"
	// ActionWait: somebody else is working on the release right now.
	ActionWait Action = "Wait"
)

// Decision is an action and why, in words for logs and messages.
type Decision struct {
	Action Action
	Why    string
}

// foreignPending is how long an action that is not ours may leave a release pending before it is taken for dead. Helm's own
// default timeout is half of it.
const foreignPending = 10 * time.Minute

// situation is what the rules are asked about.
type situation struct {
	observed  Observed
	newest    Revision
	ownerHash string
	input     string
}

func (s situation) none() bool    { return len(s.observed.Revisions) == 0 }
func (s situation) foreign() bool { return s.newest.OwnerHash != s.ownerHash }
func (s situation) pending() bool { return s.newest.Status.IsPending() }
func (s situation) atWork() bool {
	return s.pending() && s.newest.Input == "" && s.observed.At.Sub(s.newest.Changed) < foreignPending
}
func (s situation) in(status helmrelease.Status) bool { return s.newest.Status == status }
func (s situation) neverDeployed() bool {
	_, ok := s.observed.lastGood()
	return !ok
}
func (s situation) inSync() bool {
	return s.in(helmrelease.StatusDeployed) && s.newest.Input == s.input && !s.observed.Altered
}

// rules in their order: the first that holds decides.
var rules = []struct {
	holds  func(situation) bool
	action Action
	why    string
}{
	{situation.none, ActionInstall, "there is no release"},
	{situation.foreign, ActionRefuse, "a release of this name exists and is not ours"},
	{situation.atWork, ActionWait, "somebody else is working on the release"},
	{situation.pending, ActionUnlock, "the last action was broken off"},
	{situation.inSync, ActionNone, "nothing has changed"},
	{func(s situation) bool { return s.in(helmrelease.StatusUninstalling) }, ActionFinishUninstall, "the last uninstall was broken off"},
	{func(s situation) bool { return s.in(helmrelease.StatusUninstalled) }, ActionInstall, "the release was uninstalled"},
	{situation.neverDeployed, ActionInstall, "no install has succeeded yet"},
	{func(s situation) bool { return s.in(helmrelease.StatusFailed) }, ActionUpgrade, "the last action failed"},
	{func(s situation) bool { return s.observed.Altered }, ActionUpgrade, "the record of the release is not as it was noted"},
	{func(situation) bool { return true }, ActionUpgrade, "the release is not as it is wanted"},
}

// Decide says what to do next about a release that is wanted with that input. It is pure. Whether a failure is tried again
// now is for the caller: Decide says that it should be.
func Decide(observed Observed, id Identity, input string) Decision {
	newest, _ := observed.newest()
	s := situation{observed: observed, newest: newest, ownerHash: id.OwnerHash, input: input}
	for _, rule := range rules {
		if rule.holds(s) {
			return Decision{Action: rule.action, Why: rule.why}
		}
	}
	return Decision{}
}
