package webhooks

import (
	"cmp"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"waybill.dev/waybill/api/v1alpha1"
)

// trial is what is known about the templates that are tried out.
type trial struct {
	templates []v1alpha1.ResourceTemplate
	tried     int
	// refusals are the cluster's refusals, by template; nil if it would accept the template.
	refusals []error
	// failed counts the templates that the cluster neither accepted nor refused; failure is the
	// first reason.
	failed  int
	failure error
}

// attempt is the result of trying a template out.
type attempt struct {
	template int
	err      error
}

// take takes in the attempts that have ended.
func (t *trial) take(ended <-chan attempt) {
	for range len(ended) {
		a := <-ended
		t.tried++
		switch {
		case a.err == nil:
		case isRefusal(a.err):
			t.refusals[a.template] = a.err
		default:
			t.failed++
			t.failure = cmp.Or(t.failure, a.err)
		}
	}
}

// warnings returns the refusals, and how many templates could not be tried out, or not within the timeout.
func (t *trial) warnings(cluster string, timeout time.Duration) admission.Warnings {
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
