package reconcile

import (
	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/reference"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/excerpt"
)

// Event is a noteworthy fact about an object that its condition Ready does not show. Finish records
// changes of Ready itself.
type Event struct {
	// Type is corev1.EventTypeNormal or corev1.EventTypeWarning.
	Type string
	// Reason is a documented constant of the API, as in conditions.
	Reason string
	// Action is a verb for what was done, for example Correct.
	Action string
	// Note describes the event to a person. It is truncated to 1024 bytes.
	Note string
}

// maxEventNote is the API server's limit on the note of an event, in bytes.
const maxEventNote = 1024

// Tell records an event for the object of the pass. The events of a controller are rate-limited, so
// that it may have to wait; while it waits, a later one for the same object and action replaces it.
func (p *Pass) Tell(e Event) {
	// Only a reference is queued, so that the object can be freed.
	regarding, err := reference.GetReference(p.client.Scheme(), p.obj)
	if err != nil {
		return // a kind that is not in the scheme cannot have been written either
	}
	recorder, note := p.recorder, excerpt.Of(excerpt.Line(e.Note), maxEventNote)
	p.kernel.events.add(topic{p.obj.GetUID(), e.Action}, func() {
		recorder.Eventf(regarding, nil, e.Type, e.Reason, e.Action, "%s", note)
	})
}

// tellReady records the condition Ready as an event with the condition's reason.
func (p *Pass) tellReady() {
	ready := conditions.Get(p.obj, v1alpha1.ReadyCondition)
	e := Event{Type: corev1.EventTypeNormal, Reason: ready.Reason, Action: "Reconcile", Note: ready.Message}
	if ready.Status == metav1.ConditionFalse {
		e.Type = corev1.EventTypeWarning
	}
	p.Tell(e)
}
