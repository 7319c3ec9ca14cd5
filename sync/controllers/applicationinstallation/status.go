package applicationinstallation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/health"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/reconcile"
)

// maxProblems is how many problems a status lists.
const maxProblems = 50

// failed is the outcome of a step that failed. What is installed is still kept as it was.
func (d *driver) failed(_ context.Context, s *scope, err error) (reconcile.Outcome, error) {
	var known *reconcile.Error
	if errors.As(err, &known) && !reconcile.IsStalled(err) {
		err = reconcile.Waiting(known.Reason, s.requeueAfter(), "%w", err)
	}
	return reconcile.Outcome{RequeueAfter: s.requeueAfter()}, err
}

// report turns the session into the status and the outcome of the pass.
func (d *driver) report(ctx context.Context, s *scope) (reconcile.Outcome, error) {
	result := s.session.result
	s.inst.Status.Problems = toStatus(result.problems)
	s.reportDrift(result)
	switch {
	case result.err != nil:
		s.markInstalled(false, result.err)
		return d.failed(ctx, s, result.err)
	case len(result.problems) > 0:
		err := reconcile.Failed(v1alpha1.ApplyFailedReason, "%s%s", result.problems[0].Error(), andMore(len(result.problems)-1))
		s.markInstalled(false, err)
		return d.failed(ctx, s, err)
	case len(result.waiting) > 0:
		return reconcile.Outcome{
			Unknown: v1alpha1.ProgressingReason, RequeueAfter: s.requeueAfter(),
			Message: fmt.Sprintf("waiting for %s%s", result.waiting[0], andMore(len(result.waiting)-1)),
		}, nil
	}
	s.markInstalled(true, nil)
	return d.reportHealth(ctx, s)
}

// reportHealth says Ready when every object is healthy, and the Application agrees where its
// controller runs (C43). Watches wake the installation when that changes.
func (d *driver) reportHealth(ctx context.Context, s *scope) (reconcile.Outcome, error) {
	seen, _ := d.applier.Observe(s.owner)
	sick := seen.Health
	message, ready := sick.String(), sick.Healthy()
	if ready {
		var err error
		if message, ready, err = d.componentsReady(ctx, s); err != nil {
			return reconcile.Outcome{}, err
		}
	}
	if ready {
		s.session.healthDue = time.Time{}
		return reconcile.Outcome{Message: s.message(), RequeueAfter: s.requeueAfter()}, nil
	}
	return s.notHealthy(sick, message)
}

// notHealthy is progress without wait, however long it takes; with wait it is a failure when
// the timeout is over.
func (s *scope) notHealthy(sick health.Summary, message string) (reconcile.Outcome, error) {
	if o := s.options(); o != nil && o.Wait {
		s.session.healthDue = s.session.healthSince.Add(o.GetTimeout())
		if !time.Now().Before(s.session.healthDue) {
			s.session.healthDue = time.Time{}
			if o.Atomic && s.session.result.err == nil {
				s.session.giveUp = fmt.Sprintf("after %s: %s", o.GetTimeout(), message)
				return reconcile.Outcome{Pending: true, RequeueAfter: time.Millisecond}, nil
			}
			return reconcile.Outcome{}, reconcile.Waiting(v1alpha1.NotHealthyReason, s.requeueAfter(), "after %s: %s", o.GetTimeout(), message)
		}
	}
	if sick.Failed() {
		return reconcile.Outcome{}, reconcile.Waiting(v1alpha1.NotHealthyReason, s.requeueAfter(), "%s", message)
	}
	return reconcile.Outcome{Unknown: v1alpha1.ProgressingReason, Message: message, RequeueAfter: s.requeueAfter()}, nil
}

// componentsReady asks the Application, once its controller has looked at it.
func (d *driver) componentsReady(ctx context.Context, s *scope) (message string, ready bool, err error) {
	app := &v1alpha1.Application{}
	key := types.NamespacedName{Namespace: s.resolved.Namespace, Name: s.inst.Name}
	if err := d.client.Get(ctx, key, app); err != nil {
		return "", true, client.IgnoreNotFound(err)
	}
	condition := conditions.Get(app, v1alpha1.ComponentsReadyCondition)
	if condition == nil {
		return "", true, nil
	}
	if app.Status.ObservedGeneration != app.Generation {
		return "waiting for the Application's status", false, nil
	}
	return "Application: " + condition.Message, condition.Status == metav1.ConditionTrue, nil
}

func (s *scope) message() string {
	message := fmt.Sprintf("installed %s %s", s.resolved.Name, s.resolved.Version)
	if release := s.inst.Status.Release; release != nil {
		message += fmt.Sprintf(": release %s/%s revision %d of %s", release.Namespace, release.Name, release.Revision, release.Chart)
	}
	return message
}

// markInstalled sets the condition Installed: whether the release is deployed, healthy or not.
func (s *scope) markInstalled(installed bool, err error) {
	var known *reconcile.Error
	switch {
	case installed:
		conditions.MarkTrue(s.inst, v1alpha1.InstalledCondition, v1alpha1.SucceededReason, "%s", s.message())
	case errors.As(err, &known):
		conditions.MarkFalse(s.inst, v1alpha1.InstalledCondition, known.Reason, "%s", err)
	default:
		conditions.MarkFalse(s.inst, v1alpha1.InstalledCondition, v1alpha1.InstallFailedReason, "%s", err)
	}
}

// reportDrift shows what differs where drift is to be reported and left alone.
func (s *scope) reportDrift(result acted) {
	if len(result.drifted) == 0 || s.options().GetDriftDetection() != v1alpha1.DriftWarn {
		conditions.Delete(s.inst, v1alpha1.DriftedCondition)
		return
	}
	conditions.MarkTrue(s.inst, v1alpha1.DriftedCondition, v1alpha1.DriftDetectedReason, "%s", strings.Join(result.drifted, "; "))
}

func andMore(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" (and %d more)", n)
}

func toStatus(problems []manifest.Problem) []v1alpha1.Problem {
	var list []v1alpha1.Problem
	for _, p := range problems[:min(len(problems), maxProblems)] {
		list = append(list, v1alpha1.Problem{
			ObjectReference: v1alpha1.ObjectReference{Group: p.ID.Group, Kind: p.ID.Kind, Namespace: p.ID.Namespace, Name: p.ID.Name},
			File:            p.File, Line: int32(p.Line), Reason: p.Reason, Message: p.Message,
		})
	}
	return list
}
