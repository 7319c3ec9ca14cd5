package applicationinstallation

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
)

// awaitHealth starts the time within which what was just written must become healthy. What was
// there already keeps its time, or has none because it has been healthy.
func (s *scope) awaitHealth(result acted) {
	if result.err == nil && len(result.problems) == 0 {
		s.session.begun = false
	}
	if result.wrote {
		s.session.healthAwaited = awaitedFrom(s.options())
	}
}

// healthDue returns when the installation fails if it is not healthy by then; zero if it has been
// healthy, or need not be.
func (s *scope) healthDue() time.Time {
	since := s.session.healthAwaited
	if o := s.options(); !since.IsZero() && o != nil && o.Wait {
		return since.Add(o.GetTimeout())
	}
	return time.Time{}
}

// awaitedFrom returns the time from which the health of what was just written is awaited; zero
// without wait.
func awaitedFrom(o *v1alpha1.HelmDeployOptions) time.Time {
	if o == nil || !o.Wait {
		return time.Time{}
	}
	return time.Now()
}

// sinceOf returns a time as a status has it, which is in seconds.
func sinceOf(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	since := metav1.NewTime(t).Rfc3339Copy()
	return &since
}
