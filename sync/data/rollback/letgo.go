package rollback

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// LetGo gives a volume the reclaim policy that it is to have from now on. One that waits for a claim of the namespace of
// by becomes one whose claim is gone, because that claim will not be created: else it would never be reclaimed. It is no
// error if the volume is gone, or is one of another namespace, which is left alone.
func (v *Volumes) LetGo(ctx context.Context, volume string, policy corev1.PersistentVolumeReclaimPolicy, by metav1.Object) error {
	pv, err := v.volume(ctx, volume)
	if errors.Is(err, ErrGone) || errors.Is(err, ErrForeign) {
		return nil
	}
	if err != nil {
		return err
	}
	before := pv.DeepCopy()
	pv.Spec.PersistentVolumeReclaimPolicy = policy
	if ref := pv.Spec.ClaimRef; ref != nil && ref.UID == "" && ref.Namespace == by.GetNamespace() {
		ref.UID = by.GetUID() // of no claim
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := v.Client.Patch(ctx, pv, patch); err != nil {
		return fmt.Errorf("set reclaim policy of PersistentVolume %q to %s: %w", volume, policy, err)
	}
	return nil
}
