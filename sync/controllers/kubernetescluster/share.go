package kubernetescluster

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/controllers/kubernetescluster/agent"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/health"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/reconcile"
	"waybill.dev/waybill/sync/render"
)

// share is what is known of Waybill's own share of a cluster while the cluster is engaged. Only the pass
// of the KubernetesCluster uses it.
type share struct {
	cluster *cluster.Cluster
	applier *apply.Applier
	owner   apply.Owner

	// running is the action at work; nil for none.
	running *agentAction
	// tried is the input of the last action that has ended, and requested what reconcile-at was then.
	tried, requested string
	// failure is how that ended; retry says when to try again.
	failure error
	retry   reconcile.Retry
	// warnings say what may not be watched.
	warnings []manifest.Problem
	// reserved says that ClusterRoles for people were left out, until admission answers; answers says that
	// it does.
	reserved, answers bool
	// drift is that with others who keep changing what was installed.
	drift reconcile.DriftConflict
}

// agentAction is one job: to install, upgrade or correct what is wanted or, without that, to uninstall.
type agentAction struct {
	input, requested string
	wanted           *agent.Wanted
	// dirty are the objects to correct; empty for all of them.
	dirty []manifest.ID
}

// share returns what is known of Waybill's own share of the cluster of an engagement.
func (r *Reconciler) share(e *engagement) *share {
	if e.share == nil {
		c := e.cluster
		e.share = &share{cluster: c, owner: r.Agent.Owner(c.UID())}
		e.share.applier = apply.New(c.Context(), c, apply.Options{Notify: func(apply.Owner) { r.wake(c.Name()) }})
	}
	return e.share
}

// due returns the action to begin now, and when to look again; nil if there is none.
func (x *share) due(next agentAction, now time.Time) (*agentAction, time.Duration) {
	switch {
	case x.tried != next.input, x.requested != next.requested, x.retry.Due(now):
		return &next, 0
	case x.failure != nil || next.wanted == nil:
		return nil, reconcile.UntilNext(now, x.retry.At)
	}
	seen, known := x.applier.Observe(x.owner)
	if known && x.reserved && seen.Health.Healthy() {
		x.answers = true
		return &next, 0
	}
	if known && x.interrupted(seen) {
		return &next, 0 // it waits for the watches, and finds out what they have missed
	}
	if !known || len(seen.Drifted) == 0 {
		return nil, 0
	}
	if at := x.drift.Due(); at.After(now) {
		return nil, reconcile.UntilNext(now, at)
	}
	next.dirty = seen.Drifted
	return &next, 0
}

// interrupted reports whether a watch of the objects is interrupted, as when the cluster was lost and is
// back. There may be no event when it resumes: nothing may have changed.
func (x *share) interrupted(seen apply.Observation) bool {
	return slices.ContainsFunc(seen.Health.Unhealthy, func(item health.Item) bool {
		return item.Status == health.Unknown && !x.applier.Covers(item.ID) && !slices.ContainsFunc(seen.Unwatched, func(scope manifest.ID) bool {
			return scope.Group == item.ID.Group && scope.Kind == item.ID.Kind && scope.Namespace == item.ID.Namespace
		})
	})
}

// take keeps how an action ended.
func (x *share) take(a *agentAction, got agent.Acted, backoff func(int) time.Duration) {
	x.running = nil
	x.tried, x.requested, x.failure, x.warnings = a.input, a.requested, got.Err, got.Warnings
	x.reserved, x.answers = got.Reserved, x.answers && a.wanted != nil // without the release, nothing answers
	x.retry.Ended(got.Err, backoff)
	if len(a.dirty) > 0 {
		x.drift.Corrected(time.Now(), backoff)
	}
}

// performAgent begins an action, or returns its result once it has ended.
func (r *Reconciler) performAgent(s *scope, x *share) (agent.Acted, bool) {
	a, known, answers, key := x.running, s.kc.Status.Agent.DeepCopy(), x.answers, s.key
	return r.agents.Do(s.key.String(), reconcile.KeyOf(s.kc), a.input+" "+a.requested, func(ctx context.Context) agent.Acted {
		if a.wanted == nil {
			x.applier.Unwatch(x.owner)
			if err := r.Agent.Uninstall(ctx, x.cluster, known); err != nil {
				return agent.Acted{Err: err, Agent: known}
			}
			return agent.Acted{}
		}
		if err := r.installAgentCRDs(ctx, x.cluster); err != nil {
			return agent.Acted{Err: reconcile.Failed(v1alpha1.InstallFailedReason, "%w", err), Agent: known}
		}
		ctx = render.On(ctx, render.Terms{For: key.String()})
		return r.Agent.Install(ctx, x.cluster, x.applier, agent.Task{Wanted: *a.wanted, Known: known, Answers: answers, Dirty: a.dirty})
	})
}

// installAgentCRDs updates the CRDs of all kinds: the webhook and the agent serve those that the driver
// does not need as well.
func (r *Reconciler) installAgentCRDs(ctx context.Context, c *cluster.Cluster) error {
	all, err := allCRDs()
	if err != nil {
		return err
	}
	return installCRDs(ctx, c, all)
}

// allCRDs are loaded when the first agent is installed.
var allCRDs = sync.OnceValues(func() ([]crd, error) { return loadCRDs(func(string) bool { return true }) })

// uninstallAgent removes what was installed of Waybill itself from a cluster that is removed.
func (r *Reconciler) uninstallAgent(ctx context.Context, c *cluster.Cluster, known *v1alpha1.ClusterAgentStatus) error {
	if r.Agent == nil || known == nil {
		return nil
	}
	if err := r.Agent.Uninstall(ctx, c, known); err != nil {
		return fmt.Errorf("the agent: %w", err)
	}
	return nil
}
