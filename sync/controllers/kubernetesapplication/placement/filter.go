package placement

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Workload is what is to be placed, as a unit, in one cluster.
type Workload struct {
	// Selector must match the labels of the cluster.
	Selector labels.Selector
	// Kinds must be served by the cluster, each in that version.
	Kinds []schema.GroupVersionKind
}

// Candidate is one cluster with the facts that are known about it.
type Candidate struct {
	// Name of the cluster, unique among candidates.
	Name string
	// Labels that selectors see.
	Labels labels.Set
	// Seed says that the cluster is a hub of its own.
	Seed bool
	// Deleting says that the cluster is being deleted.
	Deleting bool
	// Paused says that nothing may be done in the cluster.
	Paused bool
	// Unreachable is why the cluster cannot be used; nil if it can.
	Unreachable error
	// Serves returns why a kind is not served; nil if it is, and an ErrUnanswered if that could not
	// be found out. It is called last, and only if nothing else rules out the cluster. It may ask
	// the cluster and wait; meanwhile others are asked.
	Serves func(schema.GroupVersionKind) error
	// Placed is how much runs in the cluster already; see Spread.
	Placed int
}

// Reason is a one-word reason why a cluster does not fit.
type Reason string

// The reasons, in the order in which they are checked; the first that applies counts.
const (
	// NotSelected: the labels do not match the selector.
	NotSelected Reason = "NotSelected"
	// Seed: the cluster is a seed, whose own scheduler places workloads.
	Seed Reason = "Seed"
	// Deleting: the cluster is being deleted.
	Deleting Reason = "Deleting"
	// Paused: the cluster is paused.
	Paused Reason = "Paused"
	// Unreachable: the API server does not answer, or was never asked.
	Unreachable Reason = "Unreachable"
	// KindNotServed: the API server does not serve a kind of the workload.
	KindNotServed Reason = "KindNotServed"
	// Unanswered: the API server did not answer whether it serves a kind of the workload.
	Unanswered Reason = "Unanswered"
)

// ErrUnanswered says that a cluster did not answer a question.
var ErrUnanswered = errors.New("no answer")

// askedAtATime is how many candidates are judged at a time.
const askedAtATime = 32

// Filter returns why a candidate cannot take a workload; the reason is empty if it can.
type Filter func(Workload, Candidate) (Reason, string)

// Filters is a chain: the first filter that objects counts.
type Filters []Filter

// DefaultFilters returns the filters that a cluster has to pass: cheap ones before expensive ones.
func DefaultFilters() Filters {
	return Filters{
		selected,
		driven,
		staying,
		running,
		reachable,
		serving,
	}
}

// Fit returns the candidates that can take the workload, in their order. If there is none, the
// error is a *FitError with the reason for each. It takes as long as the slowest candidate.
func (f Filters) Fit(w Workload, candidates []Candidate) ([]Candidate, error) {
	findings := make([]Misfit, len(candidates))
	group := errgroup.Group{}
	group.SetLimit(askedAtATime)
	for i, c := range candidates {
		group.Go(func() error {
			reason, message := f.objection(w, c)
			findings[i] = Misfit{Cluster: c.Name, Reason: reason, Message: message}
			return nil
		})
	}
	_ = group.Wait() // the functions return no errors
	var fitting []Candidate
	diagnosis := &FitError{}
	for i, finding := range findings {
		if finding.Reason == "" {
			fitting = append(fitting, candidates[i])
			continue
		}
		diagnosis.Clusters = append(diagnosis.Clusters, finding)
	}
	if len(fitting) > 0 {
		return fitting, nil
	}
	slices.SortFunc(diagnosis.Clusters, func(a, b Misfit) int { return strings.Compare(a.Cluster, b.Cluster) })
	return nil, diagnosis
}

func (f Filters) objection(w Workload, c Candidate) (Reason, string) {
	for _, filter := range f {
		if reason, message := filter(w, c); reason != "" {
			return reason, message
		}
	}
	return "", ""
}

func selected(w Workload, c Candidate) (Reason, string) {
	if w.Selector.Matches(c.Labels) {
		return "", ""
	}
	return NotSelected, "its labels do not match the selector"
}

func driven(_ Workload, c Candidate) (Reason, string) {
	if !c.Seed {
		return "", ""
	}
	return Seed, "it is a seed: create the KubernetesApplication in it"
}

func staying(_ Workload, c Candidate) (Reason, string) {
	if !c.Deleting {
		return "", ""
	}
	return Deleting, "it is being deleted"
}

func running(_ Workload, c Candidate) (Reason, string) {
	if !c.Paused {
		return "", ""
	}
	return Paused, "it is paused"
}

func reachable(_ Workload, c Candidate) (Reason, string) {
	if c.Unreachable == nil {
		return "", ""
	}
	return Unreachable, c.Unreachable.Error()
}

func serving(w Workload, c Candidate) (Reason, string) {
	var missing, unknown []string
	for _, kind := range w.Kinds {
		err := c.Serves(kind)
		if err == nil {
			continue
		}
		text := fmt.Sprintf("%s in %s: %v", kind.Kind, kind.GroupVersion(), err)
		if errors.Is(err, ErrUnanswered) {
			unknown = append(unknown, text)
		} else {
			missing = append(missing, text)
		}
	}
	slices.Sort(missing)
	slices.Sort(unknown)
	switch {
	case missing != nil:
		return KindNotServed, "it does not serve " + strings.Join(missing, "; ")
	case unknown != nil:
		return Unanswered, "it does not say whether it serves " + strings.Join(unknown, "; ")
	default:
		return "", ""
	}
}
