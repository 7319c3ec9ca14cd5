package release

import (
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"
)

// Action is what to do next about a release.
type Action string

const (
	// ActionNone: the release is as desired.
	ActionNone Action = "None"
	// ActionInstall creates the first revision, or replaces an install that never succeeded.
	ActionInstall Action = "Install"
	// ActionUpgrade creates another revision.
	ActionUpgrade Action = "Upgrade"
	// ActionUnlock ends a revision that was left pending, so that other actions can follow.
	ActionUnlock Action = "Unlock"
	// ActionFinishUninstall finishes an interrupted uninstall.
	ActionFinishUninstall Action = "FinishUninstall"
	// ActionRefuse: the release belongs to another owner.
	ActionRefuse Action = "Refuse"
	// ActionWait: another Helm client is working on the release right now.
	ActionWait Action = "Wait"
)

// Decision is an action and the reason for it, in words for logs and messages.
type Decision struct {
	Action Action
	Why    string
}

// foreignPending is how long an action that is not ours may leave a release pending before it is
// considered dead. It is twice Helm's own default timeout.
const foreignPending = 10 * time.Minute

// situation is what the rules decide on.
type situation struct {
	observed  Observed
	newest    Revision
	ownerHash string
	input     string
}

func (s situation) none() bool     { return len(s.observed.Revisions) == 0 }
func (s situation) foreign() bool  { return s.newest.OwnerHash != s.ownerHash }
func (s situation) unmarked() bool { return s.newest.OwnerHash == "" && s.foreign() }
func (s situation) pending() bool  { return s.newest.Status.IsPending() }
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

// rules are checked in order: the first one that holds decides.
var rules = []struct {
	holds  func(situation) bool
	action Action
	why    string
}{
	{situation.none, ActionInstall, "there is no release"},
	{situation.unmarked, ActionRefuse, "another tool has installed a release of this name; uninstall it or, to take over its objects, delete the Secrets of its revisions (labels owner=helm and name)"},
	{situation.foreign, ActionRefuse, "another installation has installed a release of this name; give this one another name"},
	{situation.atWork, ActionWait, "another Helm client is working on the release"},
	{situation.pending, ActionUnlock, "the last action was interrupted"},
	{situation.inSync, ActionNone, "nothing has changed"},
	{func(s situation) bool { return s.in(helmrelease.StatusUninstalling) }, ActionFinishUninstall, "the last uninstall was interrupted"},
	{func(s situation) bool { return s.in(helmrelease.StatusUninstalled) }, ActionInstall, "the release was uninstalled"},
	{situation.neverDeployed, ActionInstall, "no install has succeeded yet"},
	{func(s situation) bool { return s.in(helmrelease.StatusFailed) }, ActionUpgrade, "the last action failed"},
	{func(s situation) bool { return s.observed.Altered }, ActionUpgrade, "the record of the release was altered"},
	{func(situation) bool { return true }, ActionUpgrade, "the release differs from the desired state"},
}

// Decide returns what to do next about a release that is desired with the given input. It is pure.
// For a failed release it returns the action to try again; whether to do that now is up to the
// caller.
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
