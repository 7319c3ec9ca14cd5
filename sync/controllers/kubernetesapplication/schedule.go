package kubernetesapplication

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/controllers/kubernetesapplication/placement"
	"waybill.dev/waybill/sync/reconcile"
)

const (
	// warmUp is how long after a start to wait for clusters that were not contacted yet: otherwise
	// everything would go to the cluster that answers first. It is also how long to wait for other
	// processes to choose one of theirs.
	warmUp = 10 * time.Second
	// waitForReport is how long to wait for another process to say why an application fits nowhere:
	// longer than that one waits for others.
	waitForReport = warmUp + 5*time.Second
	// retryUnanswered is after how long a cluster that did not say what it serves is asked again.
	retryUnanswered = 30 * time.Second
)

// schedule finds a cluster for the application and writes it down, once and for all. If
// it finds none, unplaced says why, unless another process is to say that.
func (r *Reconciler) schedule(ctx context.Context, s *scope) error {
	if r.placements.assumed(s.key, s.app.UID) {
		// The cache is behind our own write, whose event triggers no reconciliation.
		s.skip, s.requeueAfter = true, retryConflict
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(s.app.Spec.ClusterSelector)
	if err != nil {
		s.unplaced = reconcile.Stalled(v1alpha1.InvalidSpecReason, "spec.clusterSelector: %w", err)
		return nil
	}
	asking, cancel := context.WithTimeoutCause(ctx, askTimeout, errTooSlow)
	defer cancel()
	found, err := r.candidates(asking, s, selector)
	if err != nil {
		return err
	}
	if wait := time.Until(r.started().Add(warmUp)); found.uncontacted && wait > 0 {
		s.undecided, s.requeueAfter = true, wait
		return nil
	}
	workload := placement.Workload{Selector: selector, Kinds: requiredKinds(s.app.Spec.ResourceTemplates)}
	chosen, err := r.choose(ctx, s, workload, found)
	if err != nil {
		r.reportMisfit(s, found, err)
		return nil
	}
	if err := r.write(ctx, s, chosen); err != nil {
		r.placements.forget(s.key)
		return err
	}
	// The cluster is chosen; the record of placements remembers that until a cache shows it.
	_, err = r.lookUpCluster(ctx, s)
	return err
}

// choose picks a cluster. The decision is final, and what is remembered of a cluster may be out of
// date: the chosen cluster is asked once more, and passed over if it no longer serves what it did.
func (r *Reconciler) choose(ctx context.Context, s *scope, w placement.Workload, f found) (string, error) {
	for {
		fitting, err := r.filters.Fit(w, f.candidates)
		if err != nil {
			return "", err
		}
		chosen := r.placements.assume(s.key, s.app, func(placed func(string) int) string {
			for i := range fitting {
				fitting[i].Placed = placed(fitting[i].Name)
			}
			return r.scores.Select(w, fitting).Name
		})
		if f.surveys[chosen].confirm(ctx, w.Kinds) {
			return chosen, nil
		}
		r.takeBack(ctx, s)
	}
}

// takeBack takes a decision back. While it stood, the event of a cluster that another client had
// chosen passed for one of our own write; if a cache shows another generation, the application is
// enqueued again.
func (r *Reconciler) takeBack(ctx context.Context, s *scope) {
	r.placements.forget(s.key)
	now := &v1alpha1.KubernetesApplication{}
	err := r.Client.Get(ctx, s.key, now, &client.GetOptions{UnsafeDisableDeepCopy: new(true)})
	if err == nil && now.Generation != s.app.Generation {
		r.wake(s.key)
	}
}

// found is what is known of the clusters of the application's namespace.
type found struct {
	candidates []placement.Candidate
	// surveys are what the clusters are asked that the selector matches and that this process
	// serves, by name.
	surveys map[string]*survey
	// uncontacted means that a cluster that is about to be contacted may turn out to fit.
	uncontacted bool
	// matching are the clusters that the selector matches, in whatever state. elsewhere are those of
	// them that may fit and that this process does not serve. Both are sorted.
	matching, elsewhere []string
}

// candidates gathers what is known of the clusters, without asking any of them: the questions that
// are asked later end with ctx.
func (r *Reconciler) candidates(ctx context.Context, s *scope, selector labels.Selector) (found, error) {
	list := &v1alpha1.KubernetesClusterList{}
	if err := r.Client.List(ctx, list, client.InNamespace(s.app.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return found{}, fmt.Errorf("list clusters: %w", err)
	}
	f := found{surveys: make(map[string]*survey, len(list.Items))}
	for i := range list.Items {
		kc := &list.Items[i]
		if !selector.Matches(labels.Set(kc.Labels)) {
			// No matter which process serves it: so that all processes say the same where the selector matches none.
			f.candidates = append(f.candidates, placement.Candidate{Name: kc.Name, Labels: kc.Labels})
			continue
		}
		f.matching = append(f.matching, kc.Name)
		usable := kc.DeletionTimestamp.IsZero() && !kc.Spec.Paused && !kc.IsSeed()
		switch {
		case r.serves(kc):
			state, known := r.Clusters.State(client.ObjectKeyFromObject(kc))
			f.uncontacted = f.uncontacted || usable && (!known || !state.Contacted)
			c, err := r.Clusters.Get(client.ObjectKeyFromObject(kc))
			asked := r.kinds.survey(c, s.key)
			f.surveys[kc.Name] = asked
			f.candidates = append(f.candidates, placement.Candidate{
				Name:        kc.Name,
				Labels:      kc.Labels,
				Seed:        kc.IsSeed(),
				Deleting:    !kc.DeletionTimestamp.IsZero(),
				Paused:      kc.Spec.Paused,
				Unreachable: withoutName(err),
				Serves:      func(gvk schema.GroupVersionKind) error { return asked.serves(ctx, gvk) },
			})
		case usable:
			f.elsewhere = append(f.elsewhere, kc.Name)
		}
	}
	slices.Sort(f.matching)
	slices.Sort(f.elsewhere)
	return f, nil
}

// withoutName returns why a cluster cannot be used, for a text that names the cluster already.
func withoutName(err error) error {
	var unreachable *cluster.UnreachableError
	var withheld *cluster.WithheldError
	switch {
	case errors.As(err, &unreachable):
		return fmt.Errorf("its API server does not answer: %s", unreachable.Reason)
	case errors.As(err, &withheld):
		return errors.New("it is not connected: " + withheld.Err.Error())
	case errors.Is(err, cluster.ErrNotEngaged):
		return errors.New("it is not connected")
	default:
		return err
	}
}

// requiredKinds returns the distinct kinds of the templates, without those that a template of the
// same application defines.
func requiredKinds(templates []v1alpha1.ResourceTemplate) []schema.GroupVersionKind {
	defined := map[schema.GroupKind]bool{}
	for i := range templates {
		if kind, ok := definedKind(templates[i].Spec.Template); ok {
			defined[kind] = true
		}
	}
	var required []schema.GroupVersionKind
	for i := range templates {
		gvk := templates[i].Spec.Template.GroupVersionKind()
		if !defined[gvk.GroupKind()] && !slices.Contains(required, gvk) {
			required = append(required, gvk)
		}
	}
	return required
}
