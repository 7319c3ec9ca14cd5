package rollback

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// LetGo gives a volume the reclaim policy that it is to have from now on. One that waits for a claim becomes one whose
// claim is gone: it would never be reclaimed, and the next claim of that name would be bound to it. It is no error if the
// volume is gone, or is one of another namespace, which is left alone.
func (v *Volumes) LetGo(ctx context.Context, volume string, policy corev1.PersistentVolumeReclaimPolicy) error {
	pv, err := v.volume(ctx, volume)
	if errors.Is(err, ErrGone) || errors.Is(err, ErrForeign) {
		return nil
	}
	if err != nil {
		return err
	}
	before := pv.DeepCopy()
	pv.Spec.PersistentVolumeReclaimPolicy = policy
	if pv.Spec.ClaimRef.UID == "" {
		pv.Spec.ClaimRef.UID = pv.UID // of no claim
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := v.Client.Patch(ctx, pv, patch); err != nil {
		return fmt.Errorf("set reclaim policy of PersistentVolume %q to %s: %w", volume, policy, err)
	}
	return nil
}
