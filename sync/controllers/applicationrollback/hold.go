package applicationrollback

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/data/rollback"
	"waybill.dev/waybill/sync/data/scale"
	"waybill.dev/waybill/sync/data/snapshot/contents"
	holds "waybill.dev/waybill/sync/deliver/hold"
)

// hold records what the rollback will change, and then marks it, so that no controller puts it back.
func hold(ctx context.Context, s *scope) (v1alpha1.RollbackPhase, error) {
	if s.obj.Status.Held == nil {
		if err := s.plan(ctx); err != nil {
			return v1alpha1.RollbackHolding, err
		}
		if err := s.pass.Write(ctx); err != nil {
			return v1alpha1.RollbackHolding, err
		}
	}
	for _, held := range s.obj.Status.Held {
		if err := s.marks().Put(ctx, held.ObjectReference); err != nil {
			return v1alpha1.RollbackHolding, err
		}
	}
	return v1alpha1.RollbackScalingDown, nil
}

// plan writes into the status what the rollback changes, and what it takes to go back.
func (s *scope) plan(ctx context.Context) error {
	app, err := s.stateful(ctx)
	if err != nil {
		return fmt.Errorf("get StatefulApplication %q: %w", s.obj.Spec.ApplicationName, err)
	}
	now, err := s.Contents.Find(ctx, s.obj.Namespace, applicationOf(app))
	if err != nil {
		return fmt.Errorf("find what belongs to Application %q: %w", applicationOf(app), err)
	}
	then, err := s.source(ctx)
	if err != nil {
		return err
	}
	status := &s.obj.Status
	status.SourceBefore = app.Status.Source
	status.Held, status.Left = held(now, then)
	if status.Scaled, err = s.running(ctx, now, then); err != nil {
		return err
	}
	status.Volumes = nil
	for _, claim := range slices.Sorted(maps.Keys(then.content.Spec.VolumeSnapshotRefs)) {
		v := v1alpha1.RollbackVolume{Claim: claim, Beside: s.beside(claim)}
		if v.Before, err = s.volumes().Of(ctx, s.obj.Namespace, claim); err != nil {
			return err
		}
		if v.Before != "" {
			policy, err := s.volumes().Policy(ctx, v.Before)
			if err != nil {
				return err
			}
			v.BeforePolicy = string(policy)
		}
		status.Volumes = append(status.Volumes, v)
	}
	return nil
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
		add(v1alpha1.ObjectReference{Kind: claimKind.Kind, Namespace: then.claims[name].Namespace, Name: name})
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
