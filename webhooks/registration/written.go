package registration

import (
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The pauses between writes of the same configuration, which double from the one to the other, and
// how long it must stay without a change by another client before they are over.
const (
	firstCorrectionPause = time.Second
	lastCorrectionPause  = time.Minute
	disputeOver          = 2 * time.Minute
)

// written is what this process last wrote into a configuration. Some clusters have something that
// completes the configurations of others whenever they change: without a pause, the two of us would
// write as fast as we can, for ever. In the zero value nothing was written.
type written struct {
	webhooks any
	at, due  time.Time
}

// holds reports whether just that was written before: then another client has changed it since.
func (w *written) holds(webhooks any) bool {
	return w.webhooks != nil && apiequality.Semantic.DeepEqual(w.webhooks, webhooks)
}

// disputed reports whether another client has changed it more than once, and that not long ago.
func (w *written) disputed(now time.Time) bool {
	return w.due.After(w.at) && now.Before(w.at.Add(disputeOver))
}

// note is called when something was written. What was not written before may be followed by a
// correction at once.
func (w *written) note(now time.Time, webhooks any) {
	pause := time.Duration(0)
	switch {
	case !w.holds(webhooks):
	case w.disputed(now):
		pause = min(2*w.due.Sub(w.at), lastCorrectionPause)
	default:
		pause = firstCorrectionPause
	}
	*w = written{webhooks: webhooks, at: now, due: now.Add(pause)}
}

// fieldOwner is the field manager of what this program writes.
const fieldOwner = "waybill-webhook"

// lastWriter returns the field manager that wrote the object last. It is ours only if no other one
// did in the same second: then admission changes the object while we write it.
func lastWriter(obj client.Object) string {
	var name string
	var at time.Time
	for _, entry := range obj.GetManagedFields() {
		if entry.Time == nil || entry.Time.Time.Before(at) || (entry.Time.Time.Equal(at) && entry.Manager == fieldOwner) {
			continue
		}
		name, at = entry.Manager, entry.Time.Time
	}
	return name
}
