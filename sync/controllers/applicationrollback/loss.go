package applicationrollback

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/excerpt"
)

// checkScaling checks that nothing is lost when the application is scaled to zero.
func (s *scope) checkScaling(ctx context.Context) error {
	c, err := s.change(ctx)
	if err != nil {
		return err
	}
	for _, w := range c.scaled {
		err := s.checkLoss(ctx, w.ObjectReference, func(claim string) bool { _, ok := c.then.content.Spec.VolumeSnapshotRefs[claim]; return ok })
		if err != nil {
			return err
		}
	}
	return nil
}

// checkHeld is checkScaling for what the rollback holds, just before it is scaled to zero.
func (s *scope) checkHeld(ctx context.Context) error {
	retained := func(claim string) bool {
		return slices.ContainsFunc(s.obj.Status.Volumes, func(v v1alpha1.RollbackVolume) bool { return v.Claim == claim })
	}
	for _, held := range s.obj.Status.Held {
		if err := s.checkLoss(ctx, held.ObjectReference, retained); err != nil {
			return err
		}
	}
	return nil
}

// checkLoss fails if a workload is a StatefulSet that deletes claims when it is scaled down of which the rollback does
// not retain the volumes.
func (s *scope) checkLoss(ctx context.Context, ref v1alpha1.ObjectReference, retained func(claim string) bool) error {
	if ref.Group != appsv1.GroupName || ref.Kind != "StatefulSet" {
		return nil
	}
	set := &appsv1.StatefulSet{}
	err := s.Live.Get(ctx, s.key(ref.Name), set)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("get StatefulSet %q: %w", ref.Name, err)
	}
	lost := slices.DeleteFunc(deletedWithPods(set), retained)
	if len(lost) == 0 {
		return nil
	}
	return refused("StatefulSet %q deletes its PersistentVolumeClaims when it is scaled down, and the rollback does not replace the volumes of %s: set spec.persistentVolumeClaimRetentionPolicy.whenScaled to Retain",
		set.Name, excerpt.Names(lost, shown))
}

// deletedWithPods returns the names of the claims that a StatefulSet deletes when it is scaled to zero.
func deletedWithPods(set *appsv1.StatefulSet) []string {
	policy := set.Spec.PersistentVolumeClaimRetentionPolicy
	if policy == nil || policy.WhenScaled != appsv1.DeletePersistentVolumeClaimRetentionPolicyType {
		return nil
	}
	first := int32(0)
	if set.Spec.Ordinals != nil {
		first = set.Spec.Ordinals.Start
	}
	var names []string
	for i := range ptr.Deref(set.Spec.Replicas, 1) {
		for t := range set.Spec.VolumeClaimTemplates {
			names = append(names, fmt.Sprintf("%s-%s-%d", set.Spec.VolumeClaimTemplates[t].Name, set.Name, first+i))
		}
	}
	return names
}
