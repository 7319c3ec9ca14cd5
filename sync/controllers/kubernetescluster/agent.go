package kubernetescluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/controllers/kubernetescluster/agent"
	"waybill.dev/waybill/sync/excerpt"
	"waybill.dev/waybill/sync/reconcile"
)

// maxAgentMessage bounds what a condition repeats of why the agent is not as wanted.
const maxAgentMessage = 2048

// keepAgent installs, upgrades, corrects or uninstalls Waybill's own share of the cluster, in a job whose
// end enqueues the object. It writes status.agent and the condition AgentReady, of which Ready does not
// depend: an error is one of the hub. It sets s.agentAgain.
func (r *Reconciler) keepAgent(ctx context.Context, s *scope) error {
	wanted := s.kc.Spec.Agent != nil && !s.kc.IsSeed()
	if r.Agent == nil || !wanted && s.kc.Status.Agent == nil {
		conditions.Delete(s.kc, v1alpha1.AgentReadyCondition)
		return nil
	}
	e := r.agentTarget(s)
	if e == nil {
		return nil
	}
	x := r.share(e)
	next, err := r.nextAgent(s, x, wanted)
	if err != nil {
		s.agentFailed(err)
		return nil
	}
	if x.running == nil {
		x.running, s.agentAgain = x.due(next, time.Now())
	}
	for x.running != nil {
		if err := s.recordAgent(ctx); err != nil {
			return err
		}
		got, done := r.performAgent(s, x)
		if !done {
			s.agentProgresses(x)
			return nil
		}
		r.takeAgent(s, x, got)
		x.running, s.agentAgain = x.due(next, time.Now())
	}
	s.reportAgent(x, wanted)
	return nil
}

// agentTarget returns the engagement of the cluster to install in; nil if there is none, which it reports.
func (r *Reconciler) agentTarget(s *scope) *engagement {
	state, _ := r.Clusters.State(s.key)
	e := r.engagements.Get(s.key)
	switch {
	case state.UID != "" && state.UID == r.Clusters.Local().UID():
		s.agentLeftOut("the kubeconfig leads to the cluster that the hub runs in, which has a chart of its own: leave out spec.agent")
	case state.Yields != nil:
		s.agentLeftOut("%s: spec.agent counts there", state.Yields)
	case errors.Is(state.Err, cluster.ErrUnreachable):
		conditions.MarkUnknown(s.kc, v1alpha1.AgentReadyCondition, v1alpha1.ClusterUnreachableReason, "the API server does not answer; %s", agent.Describe(s.kc.Status.Agent))
	case state.Err != nil, e == nil, e.failure() != nil:
		conditions.MarkUnknown(s.kc, v1alpha1.AgentReadyCondition, v1alpha1.ProgressingReason, "waiting until the cluster is connected and has its CustomResourceDefinitions, see condition Ready; %s", agent.Describe(s.kc.Status.Agent))
	default:
		return e
	}
	return nil
}

// agentLeftOut reports that nothing is installed through this KubernetesCluster. What was installed is
// left to the KubernetesCluster that the cluster was handed over to.
func (s *scope) agentLeftOut(format string, args ...any) {
	s.kc.Status.Agent = nil
	if s.kc.Spec.Agent == nil {
		conditions.Delete(s.kc, v1alpha1.AgentReadyCondition)
		return
	}
	conditions.MarkFalse(s.kc, v1alpha1.AgentReadyCondition, v1alpha1.AgentNotInstalledReason, "nothing is installed: "+format, args...)
}

// nextAgent returns the action that brings about what is wanted now.
func (r *Reconciler) nextAgent(s *scope, x *share, wanted bool) (agentAction, error) {
	next := agentAction{input: "uninstall", requested: s.kc.Annotations[v1alpha1.ReconcileAtAnnotation]}
	if !wanted {
		return next, nil
	}
	want, err := r.Agent.Want(s.kc.Spec.Agent)
	if err != nil {
		return next, err
	}
	digest, err := r.Agent.Digest(x.cluster.UID(), want)
	if err != nil {
		return next, reconcile.Stalled(v1alpha1.InvalidValuesReason, "spec.agent.values: %w", err)
	}
	next.input, next.wanted = "install "+digest, &want
	return next, nil
}

// recordAgent writes that something may be installed from now on, before it is.
func (s *scope) recordAgent(ctx context.Context) error {
	if s.kc.Status.Agent != nil {
		return nil
	}
	s.kc.Status.Agent = &v1alpha1.ClusterAgentStatus{}
	return s.pass.Write(ctx)
}

// takeAgent keeps the result of an action, and emits an event about it.
func (r *Reconciler) takeAgent(s *scope, x *share, got agent.Acted) {
	removed := x.running.wanted == nil && got.Err == nil
	x.take(x.running, got, r.kernel.Backoff)
	s.kc.Status.Agent = got.Agent
	switch {
	case got.Err != nil:
		s.tellAgent(corev1.EventTypeWarning, reconcile.ReasonOf(got.Err), "the agent: "+got.Err.Error())
	case removed:
		s.tellAgent(corev1.EventTypeNormal, v1alpha1.SucceededReason, "the agent is uninstalled")
	case got.Wrote:
		s.tellAgent(corev1.EventTypeNormal, v1alpha1.SucceededReason, "the agent: "+agent.Describe(got.Agent))
	case len(got.Corrected) > 0:
		s.tellAgent(corev1.EventTypeNormal, v1alpha1.DriftCorrectedReason, "the agent: "+strings.Join(got.Corrected, "; "))
	}
}

func (s *scope) tellAgent(kind, reason, note string) {
	s.pass.Tell(reconcile.Event{Type: kind, Reason: reason, Action: "KeepAgent", Note: note})
}

// agentProgresses reports an action that makes another release; one that only compares is not reported.
func (s *scope) agentProgresses(x *share) {
	doing := "uninstalling release " + agent.ReleaseName
	if w := x.running.wanted; w != nil {
		if doing = fmt.Sprintf("installing %s with image %s", w.Version, w.Image); x.tried == x.running.input {
			return
		}
		if a := s.kc.Status.Agent; a.Version == w.Version && a.Image == w.Image && conditions.Has(s.kc, v1alpha1.AgentReadyCondition) {
			return // perhaps there is nothing to do, as after a start
		}
	}
	conditions.MarkUnknown(s.kc, v1alpha1.AgentReadyCondition, v1alpha1.ProgressingReason, "%s", doing)
}

func (s *scope) agentFailed(err error) {
	conditions.MarkFalse(s.kc, v1alpha1.AgentReadyCondition, reconcile.ReasonOf(err), "%s", excerpt.Of(err.Error(), maxAgentMessage))
}

// reportAgent reports what is installed, and how it is.
func (s *scope) reportAgent(x *share, wanted bool) {
	if x.failure != nil {
		standing := ""
		if a := s.kc.Status.Agent; wanted && a != nil && a.Release != nil && a.Version != "" {
			standing = "; what runs is " + agent.Describe(a)
		}
		s.agentFailed(reconcile.Failed(reconcile.ReasonOf(x.failure), "%w%s", x.failure, standing))
		return
	}
	if !wanted {
		conditions.Delete(s.kc, v1alpha1.AgentReadyCondition)
		return
	}
	message := agent.Describe(s.kc.Status.Agent)
	if len(x.warnings) > 0 {
		message += "; " + excerpt.Of(x.warnings[0].Error(), maxAgentMessage) + excerpt.AndMore(len(x.warnings)-1)
	}
	seen, _ := x.applier.Observe(x.owner)
	switch {
	case x.reserved && !seen.Health.Failed():
		conditions.MarkUnknown(s.kc, v1alpha1.AgentReadyCondition, v1alpha1.ProgressingReason, "%s; waiting until admission answers; %s", message, seen.Health)
	case seen.Health.Healthy():
		conditions.MarkTrue(s.kc, v1alpha1.AgentReadyCondition, v1alpha1.SucceededReason, "%s", message)
	case seen.Health.Failed():
		conditions.MarkFalse(s.kc, v1alpha1.AgentReadyCondition, v1alpha1.NotHealthyReason, "%s; %s", message, seen.Health)
	default:
		conditions.MarkUnknown(s.kc, v1alpha1.AgentReadyCondition, v1alpha1.ProgressingReason, "%s; %s", message, seen.Health)
	}
}
