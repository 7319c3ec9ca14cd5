package applicationrollback

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/data/rollback"
	"waybill.dev/waybill/sync/data/scale"
	"waybill.dev/waybill/sync/data/snapshot/contents"
	holds "waybill.dev/waybill/sync/deliver/hold"
)

// hold records what the rollback will change, and then marks it, so that no controller puts it back.
func hold(ctx context.Context, s *scope) (v1alpha1.RollbackPhase, error) {
	if s.obj.Status.Held == nil {
		// No snapshot begins from here on, because the phase is in the status; one that had begun is let end.
		taking, err := s.taking(ctx)
		if err != nil {
			return v1alpha1.RollbackHolding, err
		}
		if taking != "" {
			s.waits = fmt.Sprintf("ApplicationSnapshot %q to release the application", taking)
			return v1alpha1.RollbackHolding, nil
		}
		if err := s.plan(ctx); err != nil {
			return v1alpha1.RollbackHolding, err
		}
		if err := s.pass.Write(ctx); err != nil {
			return v1alpha1.RollbackHolding, err
		}
	}
	if err := s.putMarks(ctx); err != nil {
		return v1alpha1.RollbackHolding, err
	}
	return v1alpha1.RollbackScalingDown, nil
}

// taking returns the name of an ApplicationSnapshot for which the application may be at rest; empty if there is none.
func (s *scope) taking(ctx context.Context) (string, error) {
	all := &v1alpha1.ApplicationSnapshotList{}
	if err := s.Live.List(ctx, all, client.InNamespace(s.obj.Namespace)); err != nil {
		return "", fmt.Errorf("list ApplicationSnapshots: %w", err)
	}
	for i := range all.Items {
		other := &all.Items[i]
		plan := other.Status.Plan
		same := other.Spec.Source.ApplicationName == s.obj.Spec.ApplicationName || plan != nil && plan.ApplicationName == s.obj.Status.ApplicationName
		if same && holds.Taking(other) {
			return other.Name, nil
		}
	}
	return "", nil
}

// plan writes into the status what the rollback changes, and what it takes to go back: all of it or, after an error,
// nothing.
func (s *scope) plan(ctx context.Context) error {
	c, err := s.change(ctx)
	if err != nil {
		return err
	}
	volumes, err := s.planVolumes(ctx, c.then)
	if err != nil {
		return err
	}
	status := &s.obj.Status
	status.SourceBefore, status.Scaled, status.Volumes = c.app.Status.Source, c.scaled, volumes
	status.Held, status.Left = held(c.now, c.then)
	return nil
}

// change is what a rollback is about to change.
type change struct {
	app *v1alpha1.StatefulApplication
	// now is what belongs to the application, and then what did when the snapshot was taken.
	now  *contents.Contents
	then *definitions
	// scaled are the workloads that are scaled to zero for it.
	scaled []v1alpha1.ScaledWorkload
}

// change reads what the rollback is about to change.
func (s *scope) change(ctx context.Context) (c change, err error) {
	if c.app, err = s.stateful(ctx); err != nil {
		return c, fmt.Errorf("get StatefulApplication %q: %w", s.obj.Spec.ApplicationName, err)
	}
	if c.now, err = s.Contents.Find(ctx, s.obj.Namespace, applicationOf(c.app)); err != nil {
		return c, fmt.Errorf("find what belongs to Application %q: %w", applicationOf(c.app), err)
	}
	if c.then, err = s.source(ctx); err != nil {
		return c, err
	}
	c.scaled, err = s.running(ctx, c.now, c.then)
	return c, err
}

// planVolumes returns the volumes that the claims of a snapshot have now.
func (s *scope) planVolumes(ctx context.Context, then *definitions) ([]v1alpha1.RollbackVolume, error) {
	var volumes []v1alpha1.RollbackVolume
	for _, claim := range slices.Sorted(maps.Keys(then.content.Spec.VolumeSnapshotRefs)) {
		v := v1alpha1.RollbackVolume{Claim: claim, Beside: s.beside(claim)}
		var err error
		if v.Before, err = s.volumes().Of(ctx, s.obj.Namespace, claim); err != nil {
			return nil, err
		}
		if v.Before != "" {
			policy, err := s.volumes().Policy(ctx, v.Before)
			if err != nil {
				return nil, err
			}
			v.BeforePolicy = string(policy)
		}
		volumes = append(volumes, v)
	}
	return volumes, nil
}

// held returns what the rollback holds: what is in the snapshot, what runs now, and what delivers the
// application; and what it leaves as it is, because the snapshot does not have it.
func held(now *contents.Contents, then *definitions) (held []v1alpha1.HeldObject, left []v1alpha1.ObjectReference) {
	known := map[v1alpha1.ObjectReference]bool{}
	add := func(ref v1alpha1.ObjectReference) {
		if !known[ref] {
			known[ref] = true
			held = append(held, v1alpha1.HeldObject{ObjectReference: ref})
		}
	}
	for _, o := range then.objects {
		add(refOf(o))
	}
	for _, name := range slices.Sorted(maps.Keys(then.content.Spec.VolumeSnapshotRefs)) {
		if claim := then.claims[name]; claim != nil {
			add(v1alpha1.ObjectReference{Kind: claimKind.Kind, Namespace: claim.Namespace, Name: name})
		}
	}
	leave := func(o contents.Object) {
		if ref := refOf(o.Unstructured); !known[ref] {
			left = append(left, ref)
		}
	}
	for _, o := range now.Objects {
		if isApplied(o.GroupVersionKind().GroupKind()) {
			leave(o)
		}
	}
	for _, claim := range now.Claims {
		leave(claim.Object)
	}
	for _, w := range scale.Workloads(now) {
		add(w.ObjectReference)
	}
	if now.Installation != nil {
		add(refOf(now.Installation))
	}
	return held, left
}

// holdAgain holds what has been released, because it is about to be changed once more: what was there before, what runs
// now, and what the rollback has created.
func (s *scope) holdAgain(ctx context.Context) error {
	if len(s.obj.Status.Held) == 0 {
		before, err := s.safety(ctx)
		if err != nil {
			return err
		}
		name := cmp.Or(s.obj.Status.ApplicationName, s.obj.Spec.ApplicationName) // its StatefulApplication may be gone
		now, err := s.Contents.Find(ctx, s.obj.Namespace, name)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("find what belongs to Application %q: %w", name, err)
		}
		if err != nil {
			now = &contents.Contents{} // it is created again
		}
		s.obj.Status.Held, _ = held(now, before)
		for _, o := range now.Objects {
			if o.GetAnnotations()[v1alpha1.RestoredByAnnotation] == s.mark() && isApplied(o.GroupVersionKind().GroupKind()) {
				s.addHeld(refOf(o.Unstructured))
			}
		}
		if err := s.pass.Write(ctx); err != nil {
			return err
		}
	}
	return s.putMarks(ctx)
}

func (s *scope) addHeld(ref v1alpha1.ObjectReference) {
	if !slices.ContainsFunc(s.obj.Status.Held, func(h v1alpha1.HeldObject) bool { return h.ObjectReference == ref }) {
		s.obj.Status.Held = append(s.obj.Status.Held, v1alpha1.HeldObject{ObjectReference: ref})
	}
}

// putMarks marks what is held.
func (s *scope) putMarks(ctx context.Context) error {
	for _, held := range s.obj.Status.Held {
		if err := s.marks().Put(ctx, held.ObjectReference); err != nil {
			return err
		}
	}
	return nil
}

// running returns the workloads that are to be scaled to zero, with the replicas that they have.
func (s *scope) running(ctx context.Context, now *contents.Contents, then *definitions) ([]v1alpha1.ScaledWorkload, error) {
	found := scale.Workloads(now)
	for _, w := range then.workloads {
		if slices.ContainsFunc(found, func(other v1alpha1.ScaledWorkload) bool { return other.ObjectReference == w.ObjectReference }) {
			continue
		}
		replicas, err := scale.Replicas(ctx, s.Live, w)
		if err != nil {
			return nil, err
		}
		if replicas > 0 { // it is not part of the application any more, but it will be
			w.Replicas = replicas
			found = append(found, w)
		}
	}
	return found, nil
}

// beside returns the name of the claim that a volume is restored to.
func (s *scope) beside(claim string) string {
	digest := sha256.Sum256([]byte(string(s.obj.UID) + "/" + claim))
	const most = 253 - len("-restore-") - 10
	return claim[:min(len(claim), most)] + "-restore-" + hex.EncodeToString(digest[:])[:10]
}

// marks are those of what the rollback holds.
func (s *scope) marks() holds.Marks {
	return holds.Marks{Client: s.Live, Manager: rollback.FieldManager, Value: s.heldBy()}
}

// release removes the marks: those who deliver the objects take them up again.
func (s *scope) release(ctx context.Context) error {
	for _, held := range s.obj.Status.Held {
		if err := s.marks().Drop(ctx, held.ObjectReference); err != nil {
			return err
		}
	}
	s.obj.Status.Held = nil
	return nil
}

func (s *scope) volumes() *rollback.Volumes {
	return &rollback.Volumes{Client: s.Live, Namespace: s.obj.Namespace}
}

func (s *scope) objects() *rollback.Objects { return &rollback.Objects{Client: s.Live} }
