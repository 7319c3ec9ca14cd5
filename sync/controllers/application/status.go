package application

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/runtime/conditions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/excerpt"
	"waybill.dev/waybill/sync/health"
	"waybill.dev/waybill/sync/reconcile"
)

const (
	// maxStatusBytes bounds the lists of the status: no object that we write grows past 500 KB.
	maxStatusBytes = 400 << 10
	// maxMessage bounds the message of one component, in bytes.
	maxMessage = 256
	// maxInMessage is how many components the message of a condition names.
	maxInMessage = 3
)

// summarize derives the rest of the status from the components and dependencies, and
// bounds it.
func (s *scope) summarize() {
	status := &s.app.Status
	s.total = len(status.Components) - s.leaving.Len()
	for i := range status.Components {
		c := &status.Components[i]
		c.Message = excerpt.Of(excerpt.Line(c.Message), maxMessage)
		switch {
		case s.leaving.Has(shownAs(s.key.Namespace, *c)):
		case c.Installed && c.Health == string(health.Current):
			s.healthy++
		case len(s.unhealthy) < maxInMessage:
			s.unhealthy = append(s.unhealthy, describe(c))
		}
	}
	status.ComponentsReady = fmt.Sprintf("%d/%d", s.healthy, s.total)
	status.Components = bound(status.Components)
	status.Installed = nil
	for _, c := range status.Components {
		if c.Installed && c.Name != "" {
			status.Installed = append(status.Installed, componentName(c.Group, c.Kind, c.Name))
		}
	}
	for _, d := range status.Dependencies {
		if d.Installed {
			status.Installed = append(status.Installed, componentName("", d.Kind, d.Name))
		}
	}
}

// describe returns in a few words what is wrong with a component.
func describe(c *v1alpha1.ComponentStatus) string {
	name := componentName(c.Group, c.Kind, c.Name)
	if c.Message != "" {
		return name + ": " + c.Message
	}
	return name + " is " + c.Health
}

// componentName returns `<kind>.<group>/<name>`.
func componentName(group, kind, name string) string {
	if group != "" {
		kind += "." + group
	}
	if name == "" {
		return kind
	}
	return kind + "/" + name
}

// sizeOf estimates the size of a status with these components, in bytes.
func sizeOf(components []v1alpha1.ComponentStatus) int {
	size := 0
	for i := range components {
		c := &components[i]
		// Once in the list and once in installed, plus the field names.
		size += 2*(len(c.Group)+len(c.Kind)+len(c.Name)) + len(c.Message) + 110
	}
	return size
}

// bound leaves out components past maxStatusBytes, and says how many for each kind.
func bound(components []v1alpha1.ComponentStatus) []v1alpha1.ComponentStatus {
	kept := 0
	for size := 0; kept < len(components); kept++ {
		if size += sizeOf(components[kept : kept+1]); size > maxStatusBytes {
			break
		}
	}
	if kept == len(components) {
		return components
	}
	short := components[:kept:kept]
	for rest := components[kept:]; len(rest) > 0; {
		first, count, unhealthy := rest[0], 0, 0
		for count < len(rest) && rest[count].Group == first.Group && rest[count].Kind == first.Kind {
			if rest[count].Health != string(health.Current) {
				unhealthy++
			}
			count++
		}
		rest = rest[count:]
		short = append(short, v1alpha1.ComponentStatus{
			Group: first.Group, Kind: first.Kind, Installed: unhealthy == 0, Health: string(health.Unknown),
			Message: fmt.Sprintf("%d more, of which %d are not healthy: there are too many for one status", count, unhealthy),
		})
	}
	return short
}

// judge sets the conditions for components and dependencies, and returns what keeps the Application
// from being ready: the problem that a person would look at first.
func (s *scope) judge() (reconcile.Outcome, error) {
	components := s.judgeComponents()
	dependencies := s.judgeDependencies()
	outcome := reconcile.Outcome{RequeueAfter: s.requeueAfter}
	for _, err := range []error{components, s.judgeOwnership(), dependencies} {
		if err != nil {
			outcome.Beside = s.checkup
			return outcome, err
		}
	}
	if s.checkup != nil {
		return outcome, s.checkup
	}
	outcome.Message = s.allHealthy()
	if s.unowned > 0 {
		outcome.Unknown = v1alpha1.ProgressingReason
		outcome.Message = plural(s.unowned, "component is", "components are") + " waiting for an ownerReference"
	}
	return outcome, nil
}

func plural(count int, one, many string) string {
	if count == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", count, many)
}

// allHealthy does not say how many: conditions stay as they are while components come and go, and no
// event is sent. The number stands in componentsReady.
func (s *scope) allHealthy() string {
	if s.total == 0 {
		return "there are no components"
	}
	return "all components are healthy"
}

func (s *scope) judgeComponents() error {
	switch {
	case len(s.denied) > 0:
		var reasons []string
		for _, kind := range slices.Sorted(maps.Keys(s.denied)) {
			reasons = append(reasons, s.denied[kind].Error())
		}
		message := strings.Join(reasons, "; ")
		conditions.MarkFalse(s.app, v1alpha1.ComponentsReadyCondition, v1alpha1.ForbiddenReason, "%s", message)
		return reconcile.Stalled(v1alpha1.ForbiddenReason, "%s", message)
	case s.healthy < s.total:
		verb := "are"
		if s.total-s.healthy == 1 {
			verb = "is"
		}
		message := fmt.Sprintf("%d of %d components %s not healthy: %s", s.total-s.healthy, s.total, verb, strings.Join(s.unhealthy, "; "))
		if more := s.total - s.healthy - len(s.unhealthy); more > 0 {
			message += fmt.Sprintf("; and %d more", more)
		}
		conditions.MarkFalse(s.app, v1alpha1.ComponentsReadyCondition, v1alpha1.NotHealthyReason, "%s", message)
		return reconcile.Waiting(v1alpha1.NotHealthyReason, 0, "%s", message)
	}
	conditions.MarkTrue(s.app, v1alpha1.ComponentsReadyCondition, v1alpha1.SucceededReason, "%s", s.allHealthy())
	return nil
}

func (s *scope) judgeOwnership() error {
	switch {
	case s.refused == nil:
		return nil
	case apierrors.IsForbidden(s.refused):
		return reconcile.Stalled(v1alpha1.ForbiddenReason, "a component cannot be owned: %w", s.refused)
	default:
		return reconcile.Waiting(v1alpha1.OwnershipFailedReason, 0, "a component cannot be owned: %w", s.refused)
	}
}

func (s *scope) judgeDependencies() error {
	switch {
	case len(s.missing) > 0:
		message := "not installed: " + strings.Join(s.missing, ", ")
		conditions.MarkFalse(s.app, v1alpha1.DependenciesReadyCondition, v1alpha1.DependencyNotInstalledReason, "%s", message)
		return reconcile.Waiting(v1alpha1.DependencyNotInstalledReason, 0, "dependencies are %s", message)
	case s.cycle != nil:
		message := "the Application depends on itself: " + strings.Join(s.cycle, " -> ")
		conditions.MarkFalse(s.app, v1alpha1.DependenciesReadyCondition, v1alpha1.DependencyCycleReason, "%s", message)
		return reconcile.Stalled(v1alpha1.DependencyCycleReason, "%s", message)
	}
	message := "all dependencies are installed"
	if len(s.app.Spec.Dependencies) == 0 {
		message = "there are no dependencies"
	}
	conditions.MarkTrue(s.app, v1alpha1.DependenciesReadyCondition, v1alpha1.SucceededReason, "%s", message)
	return nil
}
