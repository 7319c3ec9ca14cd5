package applicationsnapshot

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/data/snapshot/contents"
	"waybill.dev/waybill/sync/data/snapshot/metadata"
	"waybill.dev/waybill/sync/data/snapshot/volumes"
	kernel "waybill.dev/waybill/sync/reconcile"
)

// scope is one pass over one snapshot.
type scope struct {
	r       *Reconciler
	obj     *v1alpha1.ApplicationSnapshot
	pass    *kernel.Pass
	session *session
	// surveyed is true if this pass has looked up what belongs to the application.
	surveyed bool

	// message says what is waited for, and after is when to look again if nothing happens; zero for
	// never.
	message string
	after   time.Duration
}

// step carries out a phase. It returns the next one, or none if something has to happen first. A
// stalled error fails the snapshot; other errors are tried again.
type step func(s *scope, ctx context.Context) (v1alpha1.SnapshotPhase, error)

var steps = map[v1alpha1.SnapshotPhase]step{
	"": func(*scope, context.Context) (v1alpha1.SnapshotPhase, error) { return v1alpha1.SnapshotPending, nil },

	v1alpha1.SnapshotPending:   (*scope).prepare,
	v1alpha1.SnapshotCapturing: (*scope).capture,
	v1alpha1.SnapshotQuiescing: (*scope).quiesce,
	v1alpha1.SnapshotCutting:   (*scope).cut,
	v1alpha1.SnapshotReleasing: (*scope).release,
	v1alpha1.SnapshotWaiting:   (*scope).wait,
	v1alpha1.SnapshotBinding:   (*scope).bind,
}

// run carries out one phase after the other. What acts records its phase before, by commit: phases that only
// look need no write of their own.
func (s *scope) run(ctx context.Context) (kernel.Outcome, error) {
	for !s.ended() {
		next, err := steps[s.obj.Status.Phase](s, ctx)
		if err != nil && s.overdue() {
			err = kernel.Stalled(cmp.Or(kernel.ReasonOf(err), v1alpha1.VolumeSnapshotFailedReason), "%w", err)
		}
		if kernel.IsStalled(err) {
			next, err = s.fail(err), nil
		}
		if err != nil {
			return kernel.Outcome{RequeueAfter: s.after}, err
		}
		if next == "" {
			return kernel.Outcome{Unknown: v1alpha1.ProgressingReason, Message: s.message, RequeueAfter: s.after}, nil
		}
		s.message, s.after = "", 0
		s.obj.Status.Phase = next
		s.progress()
	}
	if s.obj.Status.Phase == v1alpha1.SnapshotFailed { // what it has made is deleted next
		if err := s.pass.Write(ctx); err != nil {
			return kernel.Outcome{}, err
		}
	}
	return s.end(ctx)
}

// commit records the phase, and what is intended in it, before something is done that a process which ends here
// leaves behind.
func (s *scope) commit(ctx context.Context) error {
	if s.message != "" {
		s.pass.Announce(kernel.Outcome{Unknown: v1alpha1.ProgressingReason, Message: s.message})
	}
	s.session.shown = time.Now()
	return s.pass.Write(ctx)
}

// showEvery is how often the status says at most how far the volumes are.
const showEvery = 5 * time.Second

// show has the status say how far the volumes are: a driver is done with several of them at nearly the same time, and
// should not wait for what is said about it.
func (s *scope) show(volumes []v1alpha1.SnapshotVolume) {
	if slices.Equal(volumes, s.obj.Status.Volumes) {
		return
	}
	if next := s.session.shown.Add(showEvery); time.Now().Before(next) {
		s.pause(next)
		return
	}
	s.session.shown, s.obj.Status.Volumes = time.Now(), volumes
}

// ended reports whether the snapshot is ready or has failed.
func (s *scope) ended() bool {
	return s.obj.Status.Phase == v1alpha1.SnapshotReady || s.obj.Status.Phase == v1alpha1.SnapshotFailed
}

// fail records why the snapshot fails and returns the next phase: an application that may be quiesced is
// released first.
func (s *scope) fail(err error) v1alpha1.SnapshotPhase {
	s.record(err)
	if condition := conditionOf[s.obj.Status.Phase]; condition != "" {
		conditions.MarkFalse(s.obj, condition, kernel.ReasonOf(err), "%s", err.Error())
	}
	switch s.obj.Status.Phase {
	case v1alpha1.SnapshotQuiescing, v1alpha1.SnapshotCutting:
		return v1alpha1.SnapshotReleasing
	}
	return v1alpha1.SnapshotFailed
}

// record keeps the first error, and adds the messages of later ones to it.
func (s *scope) record(err error) {
	if e := s.obj.Status.Error; e != nil {
		if !strings.Contains(e.Message, err.Error()) {
			e.Message += "; " + err.Error()
		}
		return
	}
	s.obj.Status.Error = &v1alpha1.DataError{Time: ptr.To(metav1.Now()), Reason: kernel.ReasonOf(err), Message: err.Error()}
}

// pause has the next pass follow at a time, if not earlier.
func (s *scope) pause(until time.Time) {
	left := max(time.Until(until), time.Millisecond)
	if s.after == 0 || left < s.after {
		s.after = left
	}
}

// overdue reports whether an error is not worth another try: the application has been at rest, or the
// snapshot under way, for too long.
func (s *scope) overdue() bool {
	limit := s.obj.GetVolumeSnapshotTimeout()
	switch s.obj.Status.Phase {
	case v1alpha1.SnapshotQuiescing:
		return s.obj.Status.QuiescedFrom != nil && time.Since(s.obj.Status.QuiescedFrom.Time) > limit
	case v1alpha1.SnapshotCutting, v1alpha1.SnapshotWaiting:
		return s.late()
	}
	return false
}

// deadline is when the VolumeSnapshots have to be ready.
func (s *scope) deadline() time.Time {
	return s.obj.Status.CutFrom.Add(s.obj.GetVolumeSnapshotTimeout())
}

func (s *scope) owner() volumes.Owner {
	return volumes.Owner{Namespace: s.obj.Namespace, UID: s.obj.UID}
}

// contents returns what belongs to the application.
func (s *scope) contents(ctx context.Context) (*contents.Contents, error) {
	if s.session.contents == nil {
		found, err := s.r.Finder.Find(ctx, s.obj.Namespace, s.obj.Status.Plan.ApplicationName)
		if err != nil {
			return nil, unfit(err)
		}
		s.session.contents, s.surveyed = found, true
	}
	return s.session.contents, nil
}

// outline returns what is remembered of the contents once the definitions are stored.
func (s *scope) outline(ctx context.Context) (*contents.Contents, error) {
	if s.session.outline == nil {
		found, err := s.contents(ctx)
		if err != nil {
			return nil, err
		}
		s.session.contents, s.session.outline = nil, outlineOf(found)
	}
	return s.session.outline, nil
}

// claims returns the names of the claims that are snapshotted.
func (s *scope) claims() []string {
	var names []string
	for _, v := range s.obj.Status.Volumes {
		names = append(names, v.Claim)
	}
	return names
}

// unfit says of an Application that is gone, or has objects that we may not read, that the snapshot
// cannot be taken.
func unfit(err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return kernel.Stalled(v1alpha1.ApplicationNotFoundReason, "%w", err)
	case apierrors.IsForbidden(err):
		return kernel.Stalled(v1alpha1.ForbiddenReason, "%w: grant that to the ServiceAccount of waybill-sync, by a ClusterRole with label apps.waybill.dev/aggregate-to-data=true", err)
	}
	return hopeless(err)
}

// hopeless says of definitions that cannot be stored, or read again, that the snapshot cannot be taken.
func hopeless(err error) error {
	for _, known := range []error{contents.ErrTooLarge, metadata.ErrTooLarge, metadata.ErrNoDirectory, metadata.ErrDamaged, metadata.ErrHandle} {
		if errors.Is(err, known) {
			return kernel.Stalled(v1alpha1.MetadataFailedReason, "%w", err)
		}
	}
	return err
}

// refused says of a write that the API server will refuse again that the snapshot cannot be taken.
func refused(reason string, err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		return kernel.Stalled(reason, "%w", err)
	}
	return err
}

// read gets one of our objects from the cache. If it is not there, or not yet, the API server is asked.
func (r *Reconciler) read(ctx context.Context, name types.NamespacedName, obj client.Object) error {
	err := r.Client.Get(ctx, name, obj)
	if apierrors.IsNotFound(err) {
		return r.Direct.Get(ctx, name, obj)
	}
	return err
}

// conditionOf says which condition reports on a phase.
var conditionOf = map[v1alpha1.SnapshotPhase]string{
	v1alpha1.SnapshotCapturing: v1alpha1.MetadataSnapshotCompletedCondition,
	v1alpha1.SnapshotQuiescing: v1alpha1.PreHookExecutionCompletedCondition,
	v1alpha1.SnapshotCutting:   v1alpha1.VolumeSnapshotCompletedCondition,
	v1alpha1.SnapshotReleasing: v1alpha1.PostHookExecutionCompletedCondition,
	v1alpha1.SnapshotWaiting:   v1alpha1.VolumeSnapshotCompletedCondition,
}

// completed says of a part of the work that it is done.
func (s *scope) completed(condition, format string, args ...any) {
	conditions.MarkTrue(s.obj, condition, v1alpha1.SucceededReason, format, args...)
}

// progress writes the conditions of the whole.
func (s *scope) progress() {
	switch s.obj.Status.Phase {
	case v1alpha1.SnapshotFailed:
		conditions.MarkTrue(s.obj, v1alpha1.SnapshotFailedCondition, s.obj.Status.Error.Reason, "%s", s.obj.Status.Error.Message)
		conditions.MarkFalse(s.obj, v1alpha1.SnapshotReadyCondition, s.obj.Status.Error.Reason, "%s", s.obj.Status.Error.Message)
	case v1alpha1.SnapshotReady:
		s.completed(v1alpha1.SnapshotReadyCondition, "the snapshot can be restored")
	default:
		conditions.MarkFalse(s.obj, v1alpha1.SnapshotReadyCondition, v1alpha1.ProgressingReason, "the snapshot is being taken")
	}
}
