package data

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/output"
)

// course is how far an operation is, as the object that asks for it says.
type course struct {
	// Phase that it is at; empty before the first.
	phase string
	// Message of condition Ready.
	message string
	// Ended is true once there is nothing more to follow; then succeeded says whether it came to what was
	// asked for, and result what it came to.
	ended, succeeded bool
	result           string
	// GoesOn is true if it has ended only for the command that follows it: it is tried again, or
	// continues once a user acts.
	goesOn bool
	// Came returns what a phase came to, as far as it is known; empty if there is nothing to say.
	came func(phase string) string
}

// step returns how far it is, as it is printed.
func (c course) step() output.Step {
	return output.Step{Phase: c.phase, Message: c.message, Ended: c.ended, Came: c.came}
}

// read returns the course of an operation, of an object of type T.
func read[T any](of func(*T) course) func(*unstructured.Unstructured) (course, error) {
	return func(object *unstructured.Unstructured) (course, error) {
		typed := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
			return course{}, fmt.Errorf("read %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		return of(typed), nil
	}
}

// end says what the operation came to.
func (c *course) end(succeeded bool, result string) {
	c.ended, c.succeeded, c.result, c.goesOn = true, succeeded, result, false
}

// leave ends what is not ready, and may be later.
func (c *course) leave(ready *metav1.Condition) {
	c.end(false, fmt.Sprintf("not ready: %s: %s", ready.Reason, ready.Message))
	c.goesOn = true
}

// judge takes the conditions into account: an operation that waits for a user has ended for the
// command that follows it, and so has one that another controller than Waybill's reports to be ready.
func (c *course) judge(status *v1alpha1.ReconcileStatus, generation int64) {
	ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ReadyCondition)
	if ready == nil {
		return
	}
	c.message = ready.Message
	switch {
	case c.ended || status.ObservedGeneration < generation:
	case meta.IsStatusConditionTrue(status.Conditions, v1alpha1.StalledCondition):
		c.leave(ready)
	case c.phase == "" && meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ReadyCondition):
		c.end(true, "ready: "+ready.Message)
	}
}

// why returns the error of a status, else the message of condition Ready.
func why(e *v1alpha1.DataError, message string) string {
	switch {
	case e != nil && e.Reason != "" && e.Message != "":
		return e.Reason + ": " + e.Message
	case e != nil && e.Message != "":
		return e.Message
	case message == "":
		return "its status does not say why"
	}
	return message
}

// ofSnapshot returns the course of a snapshot.
func ofSnapshot(s *v1alpha1.ApplicationSnapshot) course {
	c := course{phase: string(s.Status.Phase)}
	c.came = func(phase string) string { return snapshotCame(s, v1alpha1.SnapshotPhase(phase)) }
	c.judge(&s.Status.ReconcileStatus, s.Generation)
	switch s.Status.Phase {
	case v1alpha1.SnapshotReady:
		result := "ready"
		if s.Status.Consistency != "" {
			result += fmt.Sprintf(": consistency %s, %s", s.Status.Consistency, output.Count(len(s.Status.Volumes), "volume"))
		}
		if s.Status.Size != "" {
			result += ", " + s.Status.Size
		}
		if d := s.Status.QuiescedFor.Duration; d > 0 {
			result += ", quiesced for " + output.Short(d)
		}
		c.end(true, result)
	case v1alpha1.SnapshotFailed:
		c.end(false, "failed: "+why(s.Status.Error, c.message))
	}
	return c
}

func snapshotCame(s *v1alpha1.ApplicationSnapshot, phase v1alpha1.SnapshotPhase) string {
	status := &s.Status
	switch phase {
	case v1alpha1.SnapshotCapturing:
		if status.Objects > 0 {
			return "the definitions of " + output.Count(int(status.Objects), "object") + " are stored"
		}
	case v1alpha1.SnapshotQuiescing:
		switch {
		case len(status.Scaled) > 0:
			return output.Count(len(status.Scaled), "workload") + " scaled to zero"
		case len(status.Quiesced) > 0:
			return output.Count(len(status.Quiesced), "pre-hook")
		}
	case v1alpha1.SnapshotCutting:
		return ofVolumes(status.Volumes, "cut", func(v v1alpha1.SnapshotVolume) bool { return v.Cut })
	case v1alpha1.SnapshotReleasing:
		if d := status.QuiescedFor.Duration; d > 0 {
			return "quiesced for " + output.Short(d)
		}
	case v1alpha1.SnapshotWaiting:
		return ofVolumes(status.Volumes, "ready to use", func(v v1alpha1.SnapshotVolume) bool { return v.Ready })
	case v1alpha1.SnapshotBinding:
		if status.BoundSnapshotContentName != "" {
			return "bound to ApplicationSnapshotContent/" + status.BoundSnapshotContentName
		}
	}
	return ""
}

// ofVolumes says of how many volumes something is true.
func ofVolumes[T any](volumes []T, what string, is func(T) bool) string {
	n := 0
	for _, v := range volumes {
		if is(v) {
			n++
		}
	}
	if len(volumes) == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %s %s", n, output.Count(len(volumes), "volume"), what)
}

// ofRestore returns the course of a restore.
func ofRestore(a *v1alpha1.StatefulApplication) course {
	restore := a.Status.Restore
	if restore == nil {
		restore = &v1alpha1.RestoreStatus{}
	}
	c := course{phase: string(restore.Phase)}
	c.came = func(phase string) string {
		if phase == string(v1alpha1.RestoreObjects) && restore.Objects > 0 {
			return fmt.Sprintf("%d of %s created", restore.Created, output.Count(int(restore.Objects), "object"))
		}
		return ""
	}
	c.judge(&a.Status.ReconcileStatus, a.Generation)
	// What exists already, or is refused, is tried again: a user has to make room for it.
	ready := meta.FindStatusCondition(a.Status.Conditions, v1alpha1.ReadyCondition)
	if !c.ended && ready != nil && ready.Status == metav1.ConditionFalse && a.Status.ObservedGeneration >= a.Generation {
		c.leave(ready)
	}
	switch restore.Phase {
	case v1alpha1.RestoreCompleted:
		c.end(true, fmt.Sprintf("restored: %s, Application %s", output.Count(int(restore.Objects), "object"), a.GetApplicationName()))
	case v1alpha1.RestoreFailed:
		c.end(false, "failed: "+why(nil, c.message))
	}
	return c
}
