package applicationinstallation

import (
	"time"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/apply"
	"waybill.dev/waybill/sync/content"
	"waybill.dev/waybill/sync/reconcile"
)

// scope is the state of one pass.
type scope struct {
	// inst is the installation; its status is changed by recordIntent, act and report.
	inst *v1alpha1.ApplicationInstallation
	// pass writes the status.
	pass *reconcile.Pass
	// now is when the pass began: what was due by then, it sees to.
	now time.Time
	// told is how often the cluster had told of a change by others when the pass began: what it
	// tells later, another pass sees to.
	told int
	// session is what is remembered between passes.
	session *session
	// owner is what objects of the installation are marked with.
	owner apply.Owner

	// definition, version and resolved are set by resolve.
	definition *v1alpha1.ApplicationDefinition
	version    *v1alpha1.ApplicationVersion
	resolved   v1alpha1.ResolvedApplication
	// credentials and authorities of the source are set by resolve; nil without a reference.
	credentials *content.Content
	authorities *content.Content
	// values, merged from everything but the chart, are set by readValues.
	values map[string]any
	// digest of everything that is known to go into the installation is set by readValues;
	// what a moving git reference points at is added by prepare.
	digest string
	// obsolete is the inventory that the status named before keepInventory replaced it.
	obsolete *v1alpha1.Inventory
	// pending is set by a step that waits for a job to end as an event.
	pending bool
	// looking is set by prepare where a source is being looked at, which ends as an event.
	looking bool
}

// options of the installation, or else those of its definition.
func (s *scope) options() *v1alpha1.HelmDeployOptions {
	return s.inst.GetHelmOptions(s.definition)
}

// namespace is where the workload goes (K36).
func (s *scope) namespace() v1alpha1.TargetNamespace { return s.inst.GetTarget(s.definition) }

// method of the installation, which is that of its definition, gone or not.
func (s *scope) method() v1alpha1.Method {
	switch {
	case s.definition != nil:
		return s.definition.GetMethod()
	case s.inst.Status.Application != nil:
		return s.inst.Status.Application.Method
	default:
		return v1alpha1.MethodHelm
	}
}

// isDue says whether a time was set, and had come when the pass began.
func (s *scope) isDue(at time.Time) bool { return !at.IsZero() && !at.After(s.now) }

// requeueAfter is the time until the next look at a moving source, until the next comparison, until
// the next try, or until objects have to be healthy. What was due when the pass began is not in it: the pass has seen to
// that or, where it could not, waits for what ends as an event.
func (s *scope) requeueAfter() time.Duration {
	var next time.Time
	for _, due := range []time.Time{s.session.nextLook, s.session.compareAt, s.session.retryAt, s.session.healthDue} {
		if due.After(s.now) && (next.IsZero() || due.Before(next)) {
			next = due
		}
	}
	if next.IsZero() {
		return 0
	}
	return max(time.Until(next), time.Millisecond)
}
