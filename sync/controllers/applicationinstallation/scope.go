package applicationinstallation

import (
	"time"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/deliver/ignore"
	"waybill.dev/waybill/sync/reconcile"
	"waybill.dev/waybill/sync/source/subscription"
)

// scope is the state of one pass.
type scope struct {
	// inst is the installation; its status is changed by recordIntent, act and report.
	inst *v1alpha1.ApplicationInstallation
	// pass writes the status.
	pass *reconcile.Pass
	// now is when the pass began: the pass handles what was due by then.
	now time.Time
	// lost is why the cluster did not answer when the pass began; nil if it did. Observations are old then.
	lost error
	// told is how many changes by others the cluster had reported when the pass began: another pass
	// handles later ones.
	told int
	// session is what is remembered between passes.
	session *session
	// owner is the owner that objects of the installation are marked with.
	owner apply.Owner

	// ignored are the fields that others set; set by want.
	ignored *ignore.Rules
	// definition, resolved and source, whose version is nil as long as it is not known, are set by resolve.
	definition *v1alpha1.ApplicationDefinition
	resolved   v1alpha1.ResolvedApplication
	source     origin
	// values, merged from everything but the chart, are set by readValues.
	values map[string]any
	// optional are the optional objects that values come from, set by readValues.
	optional []string
	// digest of everything that is known to go into the installation is set by readValues;
	// what a moving git reference points at is added by prepare. It is empty if missing is set.
	digest string
	// obsolete is the inventory that the status named before keepInventory replaced it.
	obsolete *v1alpha1.Inventory
	// missing is why what is wanted is not known; set by want.
	missing error
	// waits is why what was prepared is not installed yet; set by order.
	waits error
	// unheeded is why deletionPolicy Orphan is not heeded; set by orphans, empty otherwise.
	unheeded string
	// pending is set by a step that waits for a job, which ends with an event.
	pending bool
	// looked is what the session's subscription to the source says, as of want.
	looked subscription.State
	// fetching is set by prepare while a source is being asked, which ends with an event.
	fetching fetching
}

// options returns the options of the installation, or else those of its definition.
func (s *scope) options() *v1alpha1.HelmDeployOptions {
	return s.inst.GetHelmOptions(s.definition)
}

// lookup reports whether templates may look up objects of the cluster: with the rights of the
// installation's own ServiceAccount always, with those of Waybill if the definition allows it.
func (s *scope) lookup() bool {
	return s.resolved.ServiceAccountName != "" || s.definition != nil && s.definition.Spec.AllowLookup
}

// namespace returns where the workload is installed.
func (s *scope) namespace() v1alpha1.TargetNamespace { return s.inst.GetTarget(s.definition) }

// method returns the method of the installation: that of its definition, even if that is gone.
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

// isDue reports whether a time was set, and had come when the pass began.
func (s *scope) isDue(at time.Time) bool { return !at.IsZero() && !at.After(s.now) }

// requeueAfter returns the time until the earliest of these: the next look at a moving source, the
// next comparison, the next tries, the next look at a rollback or a snapshot, and the time by which objects must be healthy.
func (s *scope) requeueAfter() time.Duration {
	return reconcile.UntilNext(s.now, s.looked.Due, s.session.comparison.at, s.session.tried.At, s.session.correction.At, s.healthDue(), s.session.holding.at, s.session.snapshotAt)
}
