package provide

import (
	"fmt"
	"slices"

	"github.com/fluxcd/pkg/runtime/conditions"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/excerpt"
)

// shown is how many installations or definitions a message names.
const shown = 5

// Report is what was found and done in a cluster. It does not change.
type Report struct {
	// Waiting is why nothing was created yet; empty if everything was reconciled.
	Waiting string
	// Held is why what is asked for was not created yet, though the rest was reconciled.
	Held string
	// Invalid are the lists of installations that cannot be read, with the reason.
	Invalid []string
	// Asked is true once what was asked for was created, or that was tried.
	Asked bool
	// Failed are the installations that are asked for and could not be created, with the reason.
	Failed []string
	// Taken is what is to be recorded of the list that spec.installationsFrom names.
	Taken *v1alpha1.TakenInstallations
	// Provided is what is to be recorded of definitions with default or enforced, sorted by name.
	Provided []v1alpha1.ProvidedDefinition
	// Overflow is why definitions are left out of Provided.
	Overflow string
}

func (r *Report) invalid(where string, err error) {
	r.Invalid = append(r.Invalid, where+": "+excerpt.Of(excerpt.Line(err.Error()), maxProblem))
}

func (r *Report) failed(what string, err error) {
	r.Failed = append(r.Failed, what+": "+excerpt.Of(excerpt.Line(err.Error()), maxProblem))
}

// Record writes a report to the status of its KubernetesCluster. A nil report stands for a cluster that
// cannot be used; waiting says why.
func Record(kc *v1alpha1.KubernetesCluster, r *Report, waiting string) {
	if r != nil && r.Waiting == "" {
		if r.Taken != nil {
			kc.Status.InstallationsTaken = r.Taken.DeepCopy()
		}
		kc.Status.Provided = slices.Clone(r.Provided)
		recordProvided(kc, r)
	}
	if r != nil && r.Waiting != "" {
		waiting = r.Waiting
	}
	if r != nil && r.Held != "" {
		waiting = r.Held
	}
	recordInitial(kc, r, waiting)
}

func recordInitial(kc *v1alpha1.KubernetesCluster, r *Report, waiting string) {
	const condition = v1alpha1.InitialInstallationsCreatedCondition
	switch {
	case !kc.AsksForInstallations():
		if conditions.Has(kc, condition) || r != nil && r.Asked {
			conditions.MarkTrue(kc, condition, v1alpha1.SucceededReason, "every installation that was asked for has been created")
		}
	case waiting != "":
		conditions.MarkFalse(kc, condition, v1alpha1.ClusterNotReadyReason, "the installations are created once the cluster can be used: %s", waiting)
	case r == nil:
		if !conditions.Has(kc, condition) {
			conditions.MarkFalse(kc, condition, v1alpha1.ClusterNotReadyReason, "the installations are created once the cluster is connected")
		}
	case len(r.Invalid) > 0:
		conditions.MarkFalse(kc, condition, v1alpha1.InvalidInstallationsReason, "%s", excerpt.Texts(slices.Concat(r.Invalid, r.Failed), "; ", shown))
	case len(r.Failed) > 0:
		conditions.MarkFalse(kc, condition, v1alpha1.InstallationsNotCreatedReason, "%s not created yet: %s",
			count(len(r.Failed)), excerpt.Texts(r.Failed, "; ", shown))
	}
}

func count(n int) string {
	if n == 1 {
		return "1 installation is"
	}
	return fmt.Sprintf("%d installations are", n)
}

func recordProvided(kc *v1alpha1.KubernetesCluster, r *Report) {
	const condition = v1alpha1.DefinitionsProvidedCondition
	var problems []string
	for _, p := range r.Provided {
		if p.Problem != "" {
			problems = append(problems, "ApplicationDefinition "+p.Name+": "+p.Problem)
		}
	}
	if r.Overflow != "" {
		problems = append(problems, r.Overflow)
	}
	switch {
	case len(problems) > 0:
		conditions.MarkFalse(kc, condition, v1alpha1.NotProvidedReason, "%s", excerpt.Texts(problems, "; ", shown))
	case len(r.Provided) == 0:
		conditions.Delete(kc, condition)
	default:
		conditions.MarkTrue(kc, condition, v1alpha1.SucceededReason, "every definition with default or enforced that is offered to the cluster was installed there")
	}
}
