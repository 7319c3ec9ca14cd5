package reconcile

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster/watch"
	"waybill.dev/waybill/sync/keyed"
)

// Object is an object of one of our own kinds.
type Object interface {
	client.Object
	conditions.Setter

	// GetReconcileStatus returns the part of the status that every kind shares.
	GetReconcileStatus() *v1alpha1.ReconcileStatus
}

// Outcome is the result of a pass, apart from its error.
type Outcome struct {
	// Pending is true if work continues elsewhere and enqueues the object when it ends: conditions
	// stay as they are, and the generation is not observed yet.
	Pending bool
	// Released is true if nothing is left of an object that is being deleted: instead of calling Finish, the
	// controller removes its finalizer.
	Released bool
	// Unknown, unless empty, means that everything was done but its effect is still to be seen:
	// Ready is Unknown with this reason, Reconciling is True.
	Unknown string
	// Message of the condition Ready.
	Message string
	// Unhandled is true if the request of the annotation reconcile-at was not carried out
	// everywhere. It is then not recorded as handled. A controller sets it while a job still carries
	// out part of the request, or another object refuses it.
	Unhandled bool
	// RequeueAfter is the time until the next pass; zero for none.
	RequeueAfter time.Duration
	// Beside is a second error, in addition to the error of the pass. Conditions show only the
	// latter, which is more severe. If Beside is worth retrying, it is retried all the same. A
	// controller sets it where the pass reports what it found, and a request of its own failed.
	Beside error
}

// Kernel remembers, per object, the status last written and the number of failures in a row. One
// kernel serves one controller. The zero value is not usable; see NewKernel.
type Kernel struct {
	min, max time.Duration
	events   *eventQueue
	known    keyed.Map[types.UID, memory]
}

type memory struct {
	// status is the status last written, nil before the first write, and version the resource
	// version of that write. The rest of the object is not kept, to save memory.
	status   any
	version  string
	failures int
}

// NewKernel returns a kernel whose back-off starts at min and doubles up to max.
func NewKernel(min, max time.Duration) *Kernel {
	return &Kernel{min: min, max: max, events: newEventQueue()}
}

// Pass is one reconciliation of one object, from Begin to Finish.
type Pass struct {
	kernel   *Kernel
	client   client.Client
	recorder events.EventRecorder
	obj      Object
	before   Object
}

// Begin starts a pass over obj, which was read from a cache. If the cache is behind our own last
// write, obj is first updated to that write: otherwise the patch would be computed against an
// outdated status.
func (k *Kernel) Begin(c client.Client, recorder events.EventRecorder, obj Object) *Pass {
	if m := k.known.Get(obj.GetUID()); m.status != nil && watch.Older(obj.GetResourceVersion(), m.version) {
		setStatus(obj, m.status)
		obj.SetResourceVersion(m.version)
	}
	return &Pass{kernel: k, client: c, recorder: recorder, obj: obj, before: obj.DeepCopyObject().(Object)}
}

// Refresh reads obj, which was read from a cache, from the API server, unless this process has written its status: the
// cache may be older than what the process before this one has recorded, and done since.
func (k *Kernel) Refresh(ctx context.Context, live client.Reader, obj Object) error {
	if k.known.Get(obj.GetUID()).status != nil {
		return nil
	}
	is := reflect.ValueOf(obj).Elem()
	found := reflect.New(is.Type()) // not into obj: fields that are gone would stay
	if err := live.Get(ctx, client.ObjectKeyFromObject(obj), found.Interface().(Object)); err != nil {
		return err
	}
	is.Set(found.Elem())
	return nil
}

// Forget drops what is remembered of an object that is gone.
func (k *Kernel) Forget(uid types.UID) { k.known.Drop(uid) }

// Write patches the status in the middle of a pass, to record intent before acting or to show
// progress. It writes nothing if nothing has changed. It is not an error if the object is gone.
func (p *Pass) Write(ctx context.Context) error { return client.IgnoreNotFound(p.write(ctx)) }

func (p *Pass) write(ctx context.Context) error {
	foldMessages(p.before, p.obj)
	if equality.Semantic.DeepEqual(p.before, p.obj) {
		return nil
	}
	answer, err := patch(ctx, p.client, p.before, p.obj)
	if err != nil {
		return err
	}
	p.obj.SetResourceVersion(answer.GetResourceVersion())
	p.before = p.obj.DeepCopyObject().(Object)
	p.kernel.remember(answer) // a job may have recorded a change that the pass has not seen
	return nil
}

// patch writes the differences between the status of before and of obj, and returns the object as
// the API server has it then: others may have written the rest of the status meanwhile.
func patch(ctx context.Context, c client.Client, before, obj Object) (Object, error) {
	change, err := client.MergeFrom(before).Data(obj)
	if err != nil {
		return nil, fmt.Errorf("compute change of %s: %w", client.ObjectKeyFromObject(obj), err)
	}
	answer := obj.DeepCopyObject().(Object)
	clearStatus(answer)
	if err := c.Status().Patch(ctx, answer, client.RawPatch(types.MergePatchType, change), client.FieldOwner(v1alpha1.FieldManager)); err != nil {
		return nil, fmt.Errorf("write status of %s: %w", client.ObjectKeyFromObject(obj), err)
	}
	return answer, nil
}

// Finish turns the outcome of a pass, or its error, into conditions, an event and a
// result. It is the only place that does, and it writes the status at most once.
func (p *Pass) Finish(ctx context.Context, outcome Outcome, err error) (ctrl.Result, error) {
	result := ctrl.Result{RequeueAfter: outcome.RequeueAfter}
	switch {
	case err != nil:
		result = p.failed(ctx, asError(err, v1alpha1.ProgressingWithRetryReason), outcome)
	case outcome.Pending:
		foldMessages(p.before, p.obj) // as those are that they are compared with
		keepGenerations(p.before, p.obj)
	case outcome.Unknown != "":
		p.Announce(outcome)
	default:
		p.kernel.succeeded(p.obj.GetUID())
		conditions.MarkTrue(p.obj, v1alpha1.ReadyCondition, v1alpha1.SucceededReason, "%s", outcome.Message)
		conditions.Delete(p.obj, v1alpha1.ReconcilingCondition)
		conditions.Delete(p.obj, v1alpha1.StalledCondition)
		p.observe(outcome)
	}
	foldMessages(p.before, p.obj)
	changed := p.readyChanged()
	if err := p.write(ctx); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err) // no event for an object that is gone
	}
	if changed {
		p.tellReady()
	}
	return result, nil
}

// Announce sets the conditions of an outcome whose effect is still to be seen, for Write to write them with
// the intent. If the pass ends with that outcome, Finish has nothing left to write.
func (p *Pass) Announce(outcome Outcome) {
	conditions.MarkUnknown(p.obj, v1alpha1.ReadyCondition, outcome.Unknown, "%s", outcome.Message)
	conditions.MarkTrue(p.obj, v1alpha1.ReconcilingCondition, v1alpha1.ProgressingReason, "%s", outcome.Message)
	conditions.Delete(p.obj, v1alpha1.StalledCondition)
	p.observe(outcome)
}

// failed sets the conditions of an error and returns when to try again.
func (p *Pass) failed(ctx context.Context, e *Error, outcome Outcome) ctrl.Result {
	conditions.MarkFalse(p.obj, v1alpha1.ReadyCondition, e.Reason, "%s", e.Error())
	p.observe(outcome)
	if e.reaction == stall {
		conditions.MarkStalled(p.obj, e.Reason, "%s", e.Error())
		conditions.Delete(p.obj, v1alpha1.ReconcilingCondition)
	} else {
		conditions.MarkReconciling(p.obj, v1alpha1.ProgressingWithRetryReason, "%s", e.Error())
		conditions.Delete(p.obj, v1alpha1.StalledCondition)
	}
	if e.reaction == retry {
		return ctrl.Result{RequeueAfter: earlier(p.again(ctx, e), outcome.RequeueAfter)}
	}
	after := earlier(e.after, outcome.RequeueAfter)
	if outcome.Beside != nil {
		if beside := asError(outcome.Beside, e.Reason); beside.reaction == retry {
			after = earlier(after, p.again(ctx, beside))
		}
	}
	return ctrl.Result{RequeueAfter: after}
}

// again logs a failed attempt and returns the delay before the next one.
func (p *Pass) again(ctx context.Context, e *Error) time.Duration {
	ctrl.LoggerFrom(ctx).Info("try failed", "reason", e.Reason, "error", e.Error())
	return p.kernel.backoff(p.obj.GetUID())
}

func (p *Pass) observe(outcome Outcome) {
	s := p.obj.GetReconcileStatus()
	s.ObservedGeneration = p.obj.GetGeneration()
	if at, ok := p.obj.GetAnnotations()[v1alpha1.ReconcileAtAnnotation]; ok && !outcome.Unhandled {
		s.LastHandledReconcileAt = at
	}
}

// readyChanged reports whether the condition Ready says something new. Progress alone is not new:
// its result is.
func (p *Pass) readyChanged() bool {
	was, is := conditions.Get(p.before, v1alpha1.ReadyCondition), conditions.Get(p.obj, v1alpha1.ReadyCondition)
	switch {
	case is == nil || is.Status == metav1.ConditionUnknown && is.Reason == v1alpha1.ProgressingReason:
		return false
	case was == nil:
		return true
	default:
		return was.Status != is.Status || was.Reason != is.Reason || (is.Status != metav1.ConditionUnknown && was.Message != is.Message)
	}
}

// Record writes the whole status of obj from a job that a pass has started, to record intent before
// acting. Nothing else may write the status until the job has ended.
func (k *Kernel) Record(ctx context.Context, c client.Client, obj Object) error {
	foldMessages(obj, obj)
	before := obj.DeepCopyObject().(Object)
	clearStatus(before)
	answer, err := patch(ctx, c, before, obj)
	if err != nil {
		return err
	}
	obj.SetResourceVersion(answer.GetResourceVersion())
	k.remember(obj)
	return nil
}

// RecordChange is like Record, but writes only the differences between before and obj: passes may
// write the rest of the status in the meantime, and it stays as they leave it.
func (k *Kernel) RecordChange(ctx context.Context, c client.Client, before, obj Object) error {
	foldMessages(before, obj)
	answer, err := patch(ctx, c, before, obj)
	if err != nil {
		return err
	}
	k.remember(answer)
	return nil
}

// remember keeps a copy of the status of obj, unless it already has a newer one.
func (k *Kernel) remember(obj Object) {
	status := statusOf(obj)
	k.known.Change(obj.GetUID(), func(m memory) (memory, bool) {
		if m.status == nil || !watch.Older(obj.GetResourceVersion(), m.version) {
			m.status, m.version = status, obj.GetResourceVersion()
		} // else a pass wrote and remembered a newer status before a job remembered its own
		return m, true
	})
}

func (k *Kernel) succeeded(uid types.UID) {
	k.known.Change(uid, func(m memory) (memory, bool) {
		m.failures = 0
		return m, m.status != nil
	})
}

func (k *Kernel) backoff(uid types.UID) time.Duration {
	before := k.known.Change(uid, func(m memory) (memory, bool) {
		m.failures++
		return m, true
	})
	return k.Backoff(before.failures + 1)
}

// Backoff returns the delay after that many failures in a row, counted from 1.
func (k *Kernel) Backoff(failures int) time.Duration {
	d := k.min
	for i := 1; i < failures && d < k.max; i++ {
		d *= 2
	}
	return min(d, k.max)
}

func earlier(a, b time.Duration) time.Duration {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}
