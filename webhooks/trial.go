package webhooks

import (
	"cmp"
	"fmt"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"waybill.dev/waybill/api/v1alpha1"
)

// trial holds what is known about the templates that are being tried out, at any moment.
type trial struct {
	templates []v1alpha1.ResourceTemplate

	mu    sync.Mutex
	tried int
	// refusals are the cluster's refusals, by template; nil if it would accept the template.
	refusals []error
	// failed counts the templates that the cluster neither accepted nor refused; failure is the
	// first reason.
	failed  int
	failure error
}

// take records the result of trying a template out.
func (t *trial) take(i int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tried++
	switch {
	case err == nil:
	case isRefusal(err):
		t.refusals[i] = err
	default:
		t.failed++
		t.failure = cmp.Or(t.failure, err)
	}
}

// skip records that there is nothing to try.
func (t *trial) skip() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tried = len(t.templates)
}

// warnings returns the refusals so far, and how many templates could not be tried out, or not
// within the timeout.
func (t *trial) warnings(cluster string, timeout time.Duration) admission.Warnings {
	t.mu.Lock()
	defer t.mu.Unlock()
	var warnings admission.Warnings
	for i, refusal := range t.refusals {
		if refusal != nil {
			warnings = append(warnings, fmt.Sprintf("resource template %s: cluster %s would refuse it: %v", t.templates[i].Metadata.Name, cluster, refusal))
		}
	}
	if t.failed > 0 {
		warnings = append(warnings, fmt.Sprintf("%d of %d changed resource templates could not be validated by a dry run in cluster %s: %v", t.failed, len(t.templates), cluster, t.failure))
	}
	if untried := len(t.templates) - t.tried; untried > 0 {
		warnings = append(warnings, fmt.Sprintf("%d of %d changed resource templates were not validated by a dry run in cluster %s within %s", untried, len(t.templates), cluster, timeout))
	}
	return warnings
}
