package applicationrollback

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/data/scale"
	"waybill.dev/waybill/sync/data/snapshot/contents"
	"waybill.dev/waybill/sync/health"
)

// recheck is when objects are looked at again that are being deleted, to be created again. Those of kinds
// that are watched are looked at before.
const recheck = 2 * time.Second

// applyObjects makes the objects as they are in the snapshot, with no replicas yet.
func applyObjects(ctx context.Context, s *scope) (v1alpha1.RollbackPhase, error) {
	d, err := s.source(ctx)
	if err != nil {
		return v1alpha1.RollbackApplying, err
	}
	for _, w := range d.workloads {
		for _, o := range d.objects {
			if refOf(o) == w.ObjectReference {
				_ = unstructured.SetNestedField(o.Object, int64(0), "spec", "replicas") // it has a spec
			}
		}
	}
	waits, err := s.apply(ctx, d.objects, map[string]string{v1alpha1.HeldByAnnotation: s.heldBy()})
	if waits || err != nil {
		return v1alpha1.RollbackApplying, err
	}
	return v1alpha1.RollbackScalingUp, nil
}

// apply makes objects as they are defined, with annotations besides, and reports whether it waits for some
// to be deleted. If some can never be written, the error is about them; else about all that failed.
func (s *scope) apply(ctx context.Context, objects []*unstructured.Unstructured, marks map[string]string) (waits bool, err error) {
	made := map[string]string{v1alpha1.RestoredByAnnotation: s.mark()}
	var failed []error
	for _, o := range objects {
		again, err := s.objects().Apply(ctx, o, marks, made)
		if again && err == nil {
			again, err = s.objects().Apply(ctx, o, marks, made) // mostly it is gone at once
		}
		if err != nil {
			failed = append(failed, err)
		}
		if again {
			waits, s.after = true, recheck
			s.waits = fmt.Sprintf("%s %q to be deleted, to be created again", o.GetKind(), o.GetName())
		}
	}
	final := slices.DeleteFunc(slices.Clone(failed), func(err error) bool { return !isFinal(err) })
	if len(final) > 0 {
		return false, errors.Join(final...)
	}
	return waits, errors.Join(failed...)
}

// scaleUp gives the workloads their replicas: those of the snapshot or, if it does not have them, those
// that they had before.
func scaleUp(ctx context.Context, s *scope) (v1alpha1.RollbackPhase, error) {
	d, err := s.source(ctx)
	if err != nil {
		return v1alpha1.RollbackScalingUp, err
	}
	for _, w := range s.wanted(d) {
		if err := scale.Up(ctx, s.Live, w); err != nil {
			return v1alpha1.RollbackScalingUp, err
		}
	}
	return v1alpha1.RollbackChecking, nil
}

// wanted returns the workloads that are to run when the application is as in the snapshot.
func (s *scope) wanted(d *definitions) []v1alpha1.ScaledWorkload {
	wanted := slices.Clone(d.workloads)
	for _, w := range s.obj.Status.Scaled {
		if !slices.ContainsFunc(d.objects, func(o *unstructured.Unstructured) bool { return refOf(o) == w.ObjectReference }) {
			wanted = append(wanted, w)
		}
	}
	return wanted
}

// check waits until the application is ready.
func check(ctx context.Context, s *scope) (v1alpha1.RollbackPhase, error) {
	d, err := s.source(ctx)
	if err != nil {
		return v1alpha1.RollbackChecking, err
	}
	for _, w := range s.wanted(d) {
		if waits, err := s.unhealthy(ctx, w.ObjectReference); waits != "" || err != nil {
			s.waits = waits
			return v1alpha1.RollbackChecking, err
		}
	}
	stateful, err := s.stateful(ctx)
	if err != nil {
		return v1alpha1.RollbackChecking, fmt.Errorf("get StatefulApplication %q: %w", s.obj.Spec.ApplicationName, err)
	}
	app := &v1alpha1.Application{}
	if err := s.Live.Get(ctx, s.key(applicationOf(stateful)), app); err != nil {
		return v1alpha1.RollbackChecking, fmt.Errorf("get Application %q: %w", applicationOf(stateful), err)
	}
	// Where no controller reconciles Applications, its workloads are all that can be judged.
	if app.Status.ObservedGeneration >= 0 && len(app.Status.Conditions) > 0 {
		ready := slices.ContainsFunc(app.Status.Conditions, func(c metav1.Condition) bool {
			return c.Type == v1alpha1.ReadyCondition && c.Status == metav1.ConditionTrue
		})
		if !ready || app.Status.ObservedGeneration != app.Generation {
			s.waits = fmt.Sprintf("Application %q to become ready", app.Name)
			return v1alpha1.RollbackChecking, nil
		}
	}
	ref := d.content.Spec.SnapshotRef
	if err := s.setSource(ctx, stateful, &v1alpha1.RestoredFrom{
		APIGroup: v1alpha1.GroupVersion.Group, Kind: v1alpha1.ApplicationSnapshotKind, Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID,
	}); err != nil {
		return v1alpha1.RollbackChecking, err
	}
	s.setReleaseRevision(d.installation)
	now := metav1.Now()
	s.obj.Status.CompletionTime = &now
	return v1alpha1.RollbackCompleted, nil
}

// unhealthy returns what is waited for until a workload is healthy.
func (s *scope) unhealthy(ctx context.Context, ref v1alpha1.ObjectReference) (waits string, err error) {
	o, err := s.object(ref)
	if err != nil {
		return "", err
	}
	if err := s.Live.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return "", fmt.Errorf("get %s %q: %w", ref.Kind, ref.Name, err)
	}
	status, message := health.Of(o)
	if status == health.Current {
		return "", nil
	}
	return strings.TrimSuffix(fmt.Sprintf("%s %q to become ready: %s", ref.Kind, ref.Name, message), ": "), nil
}

// setSource writes what the application was rolled back to last.
func (s *scope) setSource(ctx context.Context, app *v1alpha1.StatefulApplication, source *v1alpha1.RestoredFrom) error {
	before := app.DeepCopy()
	app.Status.Source = source
	err := s.Live.Status().Patch(ctx, app, client.MergeFrom(before), client.FieldOwner(v1alpha1.FieldManager))
	if err != nil {
		return fmt.Errorf("write status.source of StatefulApplication %q: %w", app.Name, err)
	}
	return nil
}

// setReleaseRevision says which revision of its release an installation goes back to, once objects and data
// are those of that revision; none while they are not.
func (s *scope) setReleaseRevision(installation *unstructured.Unstructured) {
	for i := range s.obj.Status.Held {
		held := &s.obj.Status.Held[i]
		held.ReleaseRevision = 0
		if installation != nil && held.ObjectReference == refOf(installation) {
			delivery, _ := contents.DeliveryOf(installation)
			held.ReleaseRevision = int64(delivery.ReleaseRevision)
		}
	}
}
