package applicationdefinition

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/excerpt"
	"waybill.dev/waybill/sync/reconcile"
)

// warmUp is how long after a start the registry is given to learn about every KubernetesCluster.
// Without it, every restart would record in every definition that no cluster holds a copy.
const warmUp = 10 * time.Second

// tally is the progress of the clusters that should have a copy.
type tally struct {
	held    int32
	failed  []string // with the reason
	away    []string // lost, or not accessible
	pending bool     // a copy has yet to be reconciled, which enqueues the definition
	unknown bool     // the registry does not know a cluster yet
}

// judge sets the outcome from the progress of the clusters. The status stays as it is until every
// cluster that answers was reconciled.
func (r *Reconciler) judge(_ context.Context, s *scope) error {
	t := r.count(s)
	warm := time.Until(r.started().Add(warmUp))
	if t.pending || t.unknown && warm > 0 {
		s.outcome = &reconcile.Outcome{Pending: true}
		if t.unknown {
			s.outcome.RequeueAfter = max(warm, 0)
		}
		return nil
	}
	s.definition.Status.Clusters = t.held
	if len(t.failed) > 0 {
		return reconcile.Waiting(v1alpha1.CopyFailedReason, 0, "%s", excerpt.Texts(t.failed, "; ", shown))
	}
	s.outcome = &reconcile.Outcome{Message: "every cluster that it is offered to has a copy"}
	if len(t.away) > 0 {
		s.outcome.Message = "every reachable cluster has a copy; the others get one when they are reachable again: " + excerpt.Texts(t.away, ", ", shown)
	}
	return nil
}

// count returns the progress that the copiers report.
func (r *Reconciler) count(s *scope) tally {
	var t tally
	served := map[string]bool{r.Clusters.Local().UID(): true}
	var rest []*v1alpha1.KubernetesCluster
	for i := range s.clusters {
		kc := &s.clusters[i]
		if kc.Spec.Paused || !kc.DeletionTimestamp.IsZero() || s.offer.to(kc) == nil {
			continue
		}
		if c := r.copiers.Get(client.ObjectKeyFromObject(kc)); c != nil {
			served[c.cluster.UID()] = true
			t.add(kc, c, s)
			continue
		}
		rest = append(rest, kc)
	}
	for _, kc := range rest {
		state, ok := r.Clusters.State(client.ObjectKeyFromObject(kc))
		switch {
		case !ok:
			t.unknown = true
		case served[state.UID], state.Yields != nil: // the hub itself, or driven under another name
		case !state.Contacted || state.Engaged:
			t.pending = true
		default:
			t.away = append(t.away, client.ObjectKeyFromObject(kc).String())
		}
	}
	slices.Sort(t.failed)
	slices.Sort(t.away)
	return t
}

// add counts a cluster that is engaged. What is known of its copy may be about an earlier offer.
func (t *tally) add(kc *v1alpha1.KubernetesCluster, c *copier, s *scope) {
	key := client.ObjectKeyFromObject(kc).String()
	got := c.Result(s.definition.Name)
	current := got.Value.of == s.offer.to(kc).hash
	switch {
	case !current && c.cluster.Reachable() == nil:
		t.pending = true
	case current && got.Value.held:
		t.held++
	case current && answered(got.Err):
		t.failed = append(t.failed, fmt.Sprintf("cluster %s: %v", key, got.Err))
	default:
		t.away = append(t.away, key)
	}
}
