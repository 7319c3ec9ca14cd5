package applicationrollback

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/data/scale"
)

// revert goes back to the state before the rollback, from wherever the rollback has come to. Without the
// definitions of the safety snapshot, it still gives the application its volumes back.
func revert(ctx context.Context, s *scope) (v1alpha1.RollbackPhase, error) {
	before, lost := s.safety(ctx)
	if lost != nil && !isFinal(lost) {
		return v1alpha1.RollbackReverting, lost
	}
	if waits, err := s.revertVolumes(ctx, before); waits || err != nil {
		return v1alpha1.RollbackReverting, err
	}
	if before != nil {
		if err := s.removeMade(ctx, before); err != nil {
			return v1alpha1.RollbackReverting, err
		}
		// Marks that are there stay, and those that were removed are not set again.
		if waits, err := s.apply(ctx, s.changed(before), nil); waits || err != nil {
			return v1alpha1.RollbackReverting, err
		}
	}
	for _, w := range s.obj.Status.Scaled {
		if err := scale.Up(ctx, s.Live, w); err != nil {
			return v1alpha1.RollbackReverting, err
		}
	}
	if lost != nil {
		return v1alpha1.RollbackReverting, fmt.Errorf("the volumes are as before, but the objects could not be put back: %w", lost)
	}
	if err := s.revertSource(ctx); err != nil {
		return v1alpha1.RollbackReverting, err
	}
	return v1alpha1.RollbackReverted, s.release(ctx)
}

// revertVolumes gives the claims their volumes of before back, deletes those that were restored, and
// reports whether it waits for something.
func (s *scope) revertVolumes(ctx context.Context, before *definitions) (waits bool, err error) {
	from, err := s.restoredFrom(ctx)
	if err != nil {
		return false, err
	}
	var waiting []string
	for i := range s.obj.Status.Volumes {
		v := &s.obj.Status.Volumes[i]
		now, err := s.volumes().Of(ctx, s.obj.Namespace, v.Claim)
		if err != nil {
			return false, err
		}
		back := now == v.Before
		if !back {
			if waits, err := s.quiet(ctx); waits || err != nil {
				return waits, err
			}
		}
		wait, err := s.revertVolume(ctx, v, before, from[v.Claim].Name)
		if err != nil {
			return false, err
		}
		if wait != "" {
			waiting = append(waiting, wait)
		}
	}
	s.waits = strings.Join(waiting[:min(len(waiting), shown)], ", ")
	return len(waiting) > 0, nil
}

// restoredFrom returns the VolumeSnapshots that volumes are restored from, by claim; none if that is not known any more.
func (s *scope) restoredFrom(ctx context.Context) (map[string]v1alpha1.NamespacedReference, error) {
	content := &v1alpha1.ApplicationSnapshotContent{}
	err := s.Live.Get(ctx, client.ObjectKey{Name: s.obj.Status.ContentName}, content)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("get ApplicationSnapshotContent %q: %w", s.obj.Status.ContentName, err)
	}
	return content.Spec.VolumeSnapshotRefs, nil
}

// revertVolume gives a claim its volume of before back, and deletes what was restored from a VolumeSnapshot.
func (s *scope) revertVolume(ctx context.Context, v *v1alpha1.RollbackVolume, before *definitions, snapshot string) (waits string, err error) {
	switch {
	case v.Before != "":
		waits, err = s.swap(ctx, v, s.claim(v.Claim, before), v.Before, v.After)
	case v.After != "":
		waits, err = s.volumes().Remove(ctx, s.key(v.Claim), v.After)
	}
	if waits != "" || err != nil {
		return waits, err
	}
	v.Swapped = false
	return s.volumes().Discard(ctx, s.marked(v, snapshot), v.After)
}

// changed returns those of the objects of before that the rollback may have changed. Others stay as they are, also those
// that it only holds or scales: what has become of them since is not its doing, and whether its author may write them was
// not asked.
func (s *scope) changed(before *definitions) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(before.objects), func(o *unstructured.Unstructured) bool {
		ref := refOf(o)
		return slices.Contains(s.obj.Status.Left, ref) ||
			!slices.ContainsFunc(s.obj.Status.Held, func(h v1alpha1.HeldObject) bool { return h.ObjectReference == ref })
	})
}

// removeMade deletes the objects that the rollback has created, and that were not there before.
func (s *scope) removeMade(ctx context.Context, before *definitions) error {
	for _, held := range s.obj.Status.Held {
		ref := held.ObjectReference
		if slices.ContainsFunc(before.objects, func(o *unstructured.Unstructured) bool { return refOf(o) == ref }) || ref.Kind == claimKind.Kind {
			continue
		}
		o, err := s.object(ref)
		if err != nil {
			return err
		}
		if err := s.objects().Remove(ctx, o, v1alpha1.RestoredByAnnotation, s.mark()); err != nil {
			return err
		}
	}
	return nil
}

// revertSource takes back what was said of the last rollback.
func (s *scope) revertSource(ctx context.Context) error {
	app, err := s.stateful(ctx)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("get StatefulApplication %q: %w", s.obj.Spec.ApplicationName, err)
	}
	now := app.Status.Source
	if now == nil || now.Namespace != s.obj.Namespace || now.Name != s.obj.Spec.Source.SnapshotRef.Name || now.Kind != v1alpha1.ApplicationSnapshotKind {
		return nil
	}
	return s.setSource(ctx, app, s.obj.Status.SourceBefore)
}
