package applicationinstallation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/excerpt"
	"waybill.dev/waybill/sync/health"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/reconcile"
)

// maxMessage bounds a problem, and a list of what drifted, in the message of a condition: the
// refusal of a webhook may have any length, and etcd rejects objects that are too large.
const maxMessage = 2048

// retellAfter is how old the message about objects that make progress may become. Their own messages, such as why a Pod
// does not run, enqueue nothing, because they may change all the time. To look at what watches have shown requests nothing.
const retellAfter = 10 * time.Second

// failed returns the outcome of a step that failed. What is installed is still kept as it was. While
// a source is asked once more, the answer is an event, and this pass is no further failure.
func (s *scope) failed(err error) (reconcile.Outcome, error) {
	after := s.requeueAfter()
	if reason := reconcile.ReasonOf(err); after == 0 && s.fetching != fetchingNothing && reason != "" && !reconcile.IsStalled(err) {
		return reconcile.Outcome{}, reconcile.Waiting(reason, 0, "%w", err)
	}
	return reconcile.Outcome{RequeueAfter: after}, reconcile.RetryAfter(err, after)
}

// failedToGet returns the outcome of a pass that could not get what is wanted. When to ask a source
// again is known; otherwise the error itself says when to try again.
func (s *scope) failedToGet(err error) (reconcile.Outcome, error) {
	if s.missing == nil {
		return s.failed(err)
	}
	return reconcile.Outcome{RequeueAfter: s.requeueAfter()}, err
}

// report turns the session into the status and the outcome of the pass.
func (d *driver) report(s *scope) (reconcile.Outcome, error) {
	outcome, err := d.reportAll(s)
	outcome.Unhandled = s.fetching != fetchingNothing
	s.inst.Status.GivenUp, s.inst.Status.UpgradeRollback = s.session.tried.givenUp, s.session.undo.DeepCopy()
	s.noteInstalled()
	s.inst.Status.HealthAwaitedSince = sinceOf(s.session.deadline.since)
	return outcome, err
}

// reportAll reports what is installed, and why that is not what is wanted.
func (d *driver) reportAll(s *scope) (reconcile.Outcome, error) {
	if h := &s.session.holding; h.atWork && h.held() && s.unmet() == nil && s.session.installed.digest != s.digest {
		message := fmt.Sprintf("waiting until ApplicationRollback %s has ended", h.by)
		return reconcile.Outcome{Unknown: v1alpha1.ProgressingReason, Message: message, RequeueAfter: s.requeueAfter()}, nil
	}
	unmet := s.unmet()
	if unmet != nil && !s.session.acted {
		return s.failedToGet(unmet)
	}
	outcome, err := d.reportInstalled(s)
	switch {
	case outcome.Pending:
		return outcome, err
	case unmet != nil:
		return s.failedToGet(alongside(unmet, outcome, err))
	case s.fetching == fetchingWanted && (err == nil && outcome.Unknown == "" || !s.session.result.complete() || s.session.tried.phase() != phaseWell):
		// What is wanted may be here in a moment, and says all.
		return reconcile.Outcome{Pending: true, RequeueAfter: s.requeueAfter()}, nil
	default:
		return outcome, err
	}
}

// alongside adds to the error of what is wanted what is to be said of what is installed; nothing if
// that is as it should be.
func alongside(wanted error, outcome reconcile.Outcome, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("%w; what is installed: %s", wanted, err.Error())
	case outcome.Unknown != "":
		return fmt.Errorf("%w; what is installed: %s", wanted, outcome.Message)
	default:
		return wanted
	}
}

// reportInstalled reports what is installed.
func (d *driver) reportInstalled(s *scope) (reconcile.Outcome, error) {
	failure, result := s.session.tried.failure, s.session.result
	wrong := result.wrong()
	s.inst.Status.Problems = reconcile.Problems(result.problems)
	s.reportDrift(result)
	switch {
	case failure != nil:
		s.markInstalled(false, failure)
		return s.failed(alongside(failure, reconcile.Outcome{}, wrong))
	case wrong != nil:
		s.markInstalled(false, wrong)
		return s.failed(wrong)
	case len(result.waiting) > 0:
		return reconcile.Outcome{
			Unknown: v1alpha1.ProgressingReason, RequeueAfter: s.requeueAfter(),
			Message: fmt.Sprintf("waiting for %s%s", result.waiting[0], excerpt.AndMore(len(result.waiting)-1)),
		}, nil
	}
	s.markInstalled(true, nil)
	return d.reportHealth(s)
}

// reportHealth reports Ready if every object is healthy, including the Application. Watches
// enqueue the installation when that changes.
func (d *driver) reportHealth(s *scope) (reconcile.Outcome, error) {
	d.dropWarnings(s)
	seen, _ := d.applier.Observe(s.owner)
	if !seen.Health.Healthy() {
		return s.notHealthy(seen.Health)
	}
	s.session.deadline.end()
	s.inst.Status.UpgradeSnapshot = nil // what has been healthy once is not given up
	return reconcile.Outcome{Message: s.message() + s.session.result.unwatched() + s.holdNote(), RequeueAfter: s.requeueAfter()}, nil
}

// dropWarnings drops the warnings of what is watched by now: a right to watch was granted, and if
// nothing else has changed, no action follows that would say so.
func (d *driver) dropWarnings(s *scope) {
	s.session.result.warnings = slices.DeleteFunc(s.session.result.warnings, func(w manifest.Problem) bool {
		return w.Reason == apply.ReasonNotWatched && d.applier.Covers(w.ID)
	})
}

// notHealthy reports objects that are not healthy: as progress, however long it takes; with wait,
// and until they have been healthy for the first time, as a failure once the timeout is over.
func (s *scope) notHealthy(sick health.Summary) (reconcile.Outcome, error) {
	if s.session.deadline.unseen { // it is checked when the cluster is back
		return reconcile.Outcome{Pending: true, RequeueAfter: s.requeueAfter()}, nil
	}
	if s.givesUp() { // the next pass does
		return reconcile.Outcome{Pending: true, RequeueAfter: time.Millisecond}, nil
	}
	if s.isDue(s.healthDue()) {
		return reconcile.Outcome{}, reconcile.Waiting(v1alpha1.NotHealthyReason, s.requeueAfter(), "%s", overdueMessage(s.options(), sick))
	}
	message := sick.String() + s.session.result.unwatched()
	if sick.Failed() {
		return reconcile.Outcome{}, reconcile.Waiting(v1alpha1.NotHealthyReason, s.requeueAfter(), "%s", message)
	}
	after := s.requeueAfter()
	if after == 0 || after > retellAfter {
		after = retellAfter
	}
	return reconcile.Outcome{Unknown: v1alpha1.ProgressingReason, Message: message, RequeueAfter: after}, nil
}

func overdueMessage(o *v1alpha1.HelmDeployOptions, sick health.Summary) string {
	return fmt.Sprintf("after %s: %s", o.GetTimeout(), sick)
}

func (s *scope) message() string {
	app := s.current()
	message := fmt.Sprintf("installed %s %s", app.Name, app.Version)
	if release := s.inst.Status.Release; release != nil {
		message += fmt.Sprintf(": release %s/%s revision %d of %s", release.Namespace, release.Name, release.Revision, release.Chart)
	}
	return message
}

// markInstalled sets the condition Installed: whether the release is deployed, healthy or not.
func (s *scope) markInstalled(installed bool, err error) {
	if installed {
		conditions.MarkTrue(s.inst, v1alpha1.InstalledCondition, v1alpha1.SucceededReason, "%s", s.message())
		return
	}
	reason := cmp.Or(reconcile.ReasonOf(err), v1alpha1.InstallFailedReason)
	conditions.MarkFalse(s.inst, v1alpha1.InstalledCondition, reason, "%s", err)
}

// tellCorrected reports what was corrected as an event: the status shows what is, not what was.
func (s *scope) tellCorrected(result acted) {
	if len(result.corrected) > 0 {
		s.pass.Tell(reconcile.Event{
			Type: corev1.EventTypeNormal, Reason: v1alpha1.DriftCorrectedReason, Action: "Correct", Note: strings.Join(result.corrected, "; "),
		})
	}
}

// reportDrift shows what differs if drift is to be reported and left alone.
func (s *scope) reportDrift(result findings) {
	if len(result.drifted) == 0 || s.options().GetDriftDetection() != v1alpha1.DriftWarn {
		conditions.Delete(s.inst, v1alpha1.DriftedCondition)
		return
	}
	conditions.MarkTrue(s.inst, v1alpha1.DriftedCondition, v1alpha1.DriftDetectedReason, "%s", excerpt.Of(strings.Join(result.drifted, "; "), maxMessage))
}
