package reconcile

import (
	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/reference"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/excerpt"
)

// Event is something worth telling of an object that its condition Ready does not say: of a
// change of that, Finish tells.
type Event struct {
	// Type is corev1.EventTypeNormal or corev1.EventTypeWarning.
	Type string
	// Reason is a documented one, as of a condition.
	Reason string
	// Action is the verb of what was done, for example Correct.
	Action string
	// Note says it to a person. Past 1024 bytes it is cut.
	Note string
}

// maxEventNote is the API server's limit on the note of an event, in bytes.
const maxEventNote = 1024

// Tell records an event of the object of the pass, now or when it is its turn: a controller tells
// at a pace. While an event waits, a later one of the same object and action takes its place.
func (p *Pass) Tell(e Event) {
	// Only a reference is queued, so that the object can be freed.
	regarding, err := reference.GetReference(p.client.Scheme(), p.obj)
	if err != nil {
		return // a kind that the scheme does not have cannot have been written either
	}
	recorder, note := p.recorder, excerpt.Of(e.Note, maxEventNote)
	p.kernel.events.add(topic{p.obj.GetUID(), e.Action}, func() {
		recorder.Eventf(regarding, nil, e.Type, e.Reason, e.Action, "%s", note)
	})
}

// tellReady records the condition Ready as an event: the event's reason is the condition's.
func (p *Pass) tellReady() {
	ready := conditions.Get(p.obj, v1alpha1.ReadyCondition)
	e := Event{Type: corev1.EventTypeNormal, Reason: ready.Reason, Action: "Reconcile", Note: ready.Message}
	if ready.Status == metav1.ConditionFalse {
		e.Type = corev1.EventTypeWarning
	}
	p.Tell(e)
}
