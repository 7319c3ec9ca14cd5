package kubernetesapplicationresource

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/deliver/hold"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/reconcile"
)

// report turns the last submission into the status and the outcome of the pass.
func (s *scope) report() (reconcile.Outcome, error) {
	got := s.state.Result
	if got.Inventory != nil {
		s.kar.Status.Inventory = recorded(got.Inventory)
	}
	s.kar.Status.Held = s.held()
	hold.Mark(s.kar, s.kar.Status.Held)
	if s.session.placed {
		s.kar.Status.Namespace = s.session.namespace
	}
	s.showStatus(time.Now())
	outcome := reconcile.Outcome{RequeueAfter: s.showAfter}
	switch err := s.withheld(); {
	case reconcile.IsStalled(got.Err):
		return outcome, got.Err
	case got.Err != nil:
		return outcome, reconcile.Waiting(reconcile.ReasonOf(got.Err), 0, "%w", got.Err)
	case len(got.Problems) > 0:
		return outcome, reconcile.Waiting(reasonOf(got.Problems), 0, "%s", describe(got.Problems))
	case err != nil:
		return outcome, err
	case len(got.Waiting) > 0:
		outcome.Unknown, outcome.Message = v1alpha1.ProgressingReason, "waiting for "+list(got.Waiting)
		return outcome, nil
	}
	outcome.Message = s.message(got)
	if len(s.state.Contested) > 0 {
		outcome.Message += "; another field manager keeps changing or deleting it there; corrections back off: " +
			"metadata.managedFields names the manager of a changed field; have only one of the two manage it"
	}
	return outcome, nil
}

// reasons maps the reasons of a delivery to those that are shown.
var reasons = map[string]string{
	apply.ReasonConflict:          v1alpha1.ObjectConflictReason,
	apply.ReasonKindNotFound:      v1alpha1.KindNotServedReason,
	apply.ReasonNamespaceNotFound: v1alpha1.NamespaceNotFoundReason,
	apply.ReasonForbidden:         v1alpha1.ForbiddenReason,
}

// reasonOf returns the reason to show for the first problem; the templated object comes first.
func reasonOf(problems []manifest.Problem) string {
	if reason, found := reasons[problems[0].Reason]; found {
		return reason
	}
	return v1alpha1.ApplyFailedReason
}

// describe quotes every problem. What the cluster said is repeated word for word.
func describe(problems []manifest.Problem) string {
	texts := make([]string, 0, len(problems))
	for _, p := range problems {
		texts = append(texts, p.Error())
	}
	return strings.Join(texts, "; ")
}

func (s *scope) message(got apply.Result) string {
	id := s.object()
	id.Namespace = s.session.namespace
	message := fmt.Sprintf("submitted %s to cluster %s", id, s.kar.Spec.ClusterName)
	switch n := len(s.secrets); n {
	case 0:
	case 1:
		message += ", with a copy of 1 Secret"
	default:
		message += fmt.Sprintf(", with copies of %d Secrets", n)
	}
	if len(got.Warnings) > 0 {
		message += "; " + describe(got.Warnings)
	}
	message += hold.Note(got.Held)
	if got.Unseen {
		message += "; it is looked at once a minute"
	}
	return message
}

// unlooked are the reasons of errors that reveal nothing about what is in the cluster.
var unlooked = []string{v1alpha1.ClusterUnreachableReason, v1alpha1.NotScheduledReason, v1alpha1.ProgressingWithRetryReason}

// deletion are the reasons of errors about a deletion that was begun.
var deletion = []string{v1alpha1.DeletingReason, v1alpha1.DeleteFailedReason}

// conclude sets the condition Submitted and the state after a pass that is not pending.
func (s *scope) conclude(outcome reconcile.Outcome, err error) {
	reason := reconcile.ReasonOf(err)
	switch {
	case !s.kar.DeletionTimestamp.IsZero():
		if slices.Contains(deletion, reason) {
			conditions.MarkFalse(s.kar, v1alpha1.SubmittedCondition, reason, "%s", err)
		}
	case err == nil && outcome.Unknown == "":
		conditions.MarkTrue(s.kar, v1alpha1.SubmittedCondition, v1alpha1.SucceededReason, "%s", outcome.Message)
	case err == nil:
		s.markUnknown(outcome.Unknown, outcome.Message)
	case reason == "":
		s.markUnknown(v1alpha1.ProgressingWithRetryReason, err.Error())
	case slices.Contains(unlooked, reason):
		s.markUnknown(reason, err.Error())
	default:
		conditions.MarkFalse(s.kar, v1alpha1.SubmittedCondition, reason, "%s", err)
	}
	s.kar.Status.State = stateOf(s.kar)
}

// markUnknown records that it is not known whether the cluster holds the object, unless that was
// known for this generation when it was last possible to look.
func (s *scope) markUnknown(reason, message string) {
	last := conditions.Get(s.kar, v1alpha1.SubmittedCondition)
	if last != nil && last.Status != metav1.ConditionUnknown && last.ObservedGeneration == s.kar.Generation {
		return
	}
	conditions.MarkUnknown(s.kar, v1alpha1.SubmittedCondition, reason, "%s", message)
}

// stateOf returns the state that follows from the conditions.
func stateOf(kar *v1alpha1.KubernetesApplicationResource) v1alpha1.ApplicationState {
	switch submitted := conditions.Get(kar, v1alpha1.SubmittedCondition); {
	case !kar.DeletionTimestamp.IsZero():
		return v1alpha1.StateDeleting
	case kar.Spec.ClusterName == "":
		return v1alpha1.StatePending
	case submitted == nil || submitted.Status == metav1.ConditionUnknown:
		return v1alpha1.StateScheduled
	case submitted.Status == metav1.ConditionTrue:
		return v1alpha1.StateSubmitted
	default:
		return v1alpha1.StateFailed
	}
}

// showStatus copies the status of the object as it was last seen. While it is not known,
// because the cluster is lost or the object was created a moment ago, the status that was known
// before stays.
func (s *scope) showStatus(now time.Time) {
	status, known := s.seenStatus()
	if !known || s.shows(status) {
		return
	}
	if next := s.session.shownAt.Add(statusDistance); next.After(now) {
		s.showAfter = next.Sub(now)
		return
	}
	s.session.shownAt = now
	s.show(status)
}

// statusDistance is the minimum time between two statuses of an object that are shown, because each
// is a write on the hub and a status may change all the time. The first after some quiet is shown
// at once.
const statusDistance = 200 * time.Millisecond

// seenStatus returns the status of the object, and whether it is known.
func (s *scope) seenStatus() (apply.Status, bool) {
	seen, _ := s.session.delivery.Observe()
	for _, status := range seen.Statuses { // there is one at most: Secrets have none
		return status, true
	}
	unserved := func(p manifest.Problem) bool { return p.Reason == apply.ReasonKindNotFound && s.sameObject(p.ID) }
	return apply.Status{}, slices.ContainsFunc(s.state.Result.Problems, unserved)
}

// shows reports whether that status is shown already.
func (s *scope) shows(status apply.Status) bool {
	if status.TooLarge != conditions.IsTrue(s.kar, v1alpha1.RemoteStatusTooLargeCondition) {
		return false
	}
	remote := withoutNulls(status.JSON)
	if remote == nil || s.kar.Status.Remote == nil {
		return remote == nil && s.kar.Status.Remote == nil
	}
	return sameJSON(s.kar.Status.Remote.Raw, remote)
}

func (s *scope) show(status apply.Status) {
	if status.TooLarge {
		conditions.MarkTrue(s.kar, v1alpha1.RemoteStatusTooLargeCondition, v1alpha1.RemoteStatusTooLargeCondition,
			"the status of the object is larger than %d KiB, so status.remote is left out", apply.MaxStatus>>10)
	} else {
		conditions.Delete(s.kar, v1alpha1.RemoteStatusTooLargeCondition)
	}
	s.kar.Status.Remote = nil
	if remote := withoutNulls(status.JSON); remote != nil {
		s.kar.Status.Remote = &apiextensionsv1.JSON{Raw: remote}
	}
}

// withoutNulls leaves out fields whose value is null, which no merge patch can write and which
// Kubernetes treats as absent.
func withoutNulls(text []byte) []byte {
	if !bytes.Contains(text, []byte("null")) {
		return text
	}
	value, err := decode(text)
	if err != nil {
		return text
	}
	pruned, err := json.Marshal(prune(value))
	if err != nil {
		return text
	}
	return pruned
}

func prune(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, field := range value {
			if field == nil {
				delete(value, key)
				continue
			}
			value[key] = prune(field)
		}
	case []any:
		for i := range value {
			value[i] = prune(value[i])
		}
	}
	return value
}

// sameJSON reports whether two texts are equivalent JSON.
func sameJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	one, errOne := decode(a)
	other, errOther := decode(b)
	return errOne == nil && errOther == nil && equality.Semantic.DeepEqual(one, other)
}

// decode decodes JSON and keeps numbers as they are written.
func decode(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	err := decoder.Decode(&value)
	return value, err
}
