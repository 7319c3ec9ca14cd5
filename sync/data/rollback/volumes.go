package rollback

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/data/restore"
)

var (
	// ErrGone means that a volume that is to be used does not exist any more.
	ErrGone = errors.New("does not exist any more")
	// ErrForeign means that a volume that is to be used is not one of the namespace.
	ErrForeign = errors.New("is not of namespace")
)

// Volumes changes the volumes of claims. Client must not read from a cache.
type Volumes struct {
	Client client.Client
	// Namespace is that of the volumes that may be changed: those whose spec.claimRef names a claim of it. A user may
	// write the name of any volume into a claim.
	Namespace string
}

// Policy returns the reclaim policy of a volume.
func (v *Volumes) Policy(ctx context.Context, volume string) (corev1.PersistentVolumeReclaimPolicy, error) {
	pv, err := v.volume(ctx, volume)
	if err != nil {
		return "", err
	}
	return pv.Spec.PersistentVolumeReclaimPolicy, nil
}

// SetPolicy sets the reclaim policy of a volume. It is no error if the volume is gone, unless it is to be
// retained.
func (v *Volumes) SetPolicy(ctx context.Context, volume string, policy corev1.PersistentVolumeReclaimPolicy) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		pv, err := v.volume(ctx, volume)
		if errors.Is(err, ErrGone) && policy != corev1.PersistentVolumeReclaimRetain {
			return nil
		}
		if err != nil {
			return err
		}
		return v.write(ctx, pv, policy)
	})
}

// Release gives a volume that was retained for a claim its reclaim policy back: it is bound to nothing, so that
// says what becomes of it. A volume that is gone, or that others have bound or given another policy since, is left as
// it is.
func (v *Volumes) Release(ctx context.Context, claim, volume string, policy corev1.PersistentVolumeReclaimPolicy) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		pv, err := v.volume(ctx, volume)
		if errors.Is(err, ErrGone) || errors.Is(err, ErrForeign) {
			return nil
		}
		if err != nil || pv.Spec.ClaimRef.Name != claim || pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
			return err
		}
		now, err := v.claim(ctx, client.ObjectKey{Namespace: v.Namespace, Name: claim})
		if err != nil || now != nil && now.UID == pv.Spec.ClaimRef.UID {
			return err
		}
		return v.write(ctx, pv, policy)
	})
}

// write writes the reclaim policy of a volume, if the volume is still as it was read.
func (v *Volumes) write(ctx context.Context, pv *corev1.PersistentVolume, policy corev1.PersistentVolumeReclaimPolicy) error {
	if pv.Spec.PersistentVolumeReclaimPolicy == policy {
		return nil
	}
	patch := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q},"spec":{"persistentVolumeReclaimPolicy":%q}}`, pv.ResourceVersion, policy)
	if err := v.Client.Patch(ctx, pv, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("set reclaim policy of PersistentVolume %q to %s: %w", pv.Name, policy, err)
	}
	return nil
}

// volume returns a volume of the namespace that exists and is not being deleted.
func (v *Volumes) volume(ctx context.Context, name string) (*corev1.PersistentVolume, error) {
	pv := &corev1.PersistentVolume{}
	err := v.Client.Get(ctx, client.ObjectKey{Name: name}, pv)
	switch {
	case apierrors.IsNotFound(err) || err == nil && pv.DeletionTimestamp != nil:
		return nil, fmt.Errorf("PersistentVolume %q %w", name, ErrGone)
	case err != nil:
		return nil, fmt.Errorf("get PersistentVolume %q: %w", name, err)
	case pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.Namespace != v.Namespace:
		return nil, fmt.Errorf("PersistentVolume %q %w %q: its spec.claimRef names no PersistentVolumeClaim of it", name, ErrForeign, v.Namespace)
	}
	return pv, nil
}

// claim returns a claim; nil if there is none.
func (v *Volumes) claim(ctx context.Context, key client.ObjectKey) (*corev1.PersistentVolumeClaim, error) {
	claim := &corev1.PersistentVolumeClaim{}
	err := v.Client.Get(ctx, key, claim)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get PersistentVolumeClaim %q: %w", key.Name, err)
	}
	return claim, nil
}

// Of returns the volume that a claim is bound to: empty if there is no claim, or if it is being deleted. A volume that
// is not bound to the claim is not that of the claim, although it may name it.
func (v *Volumes) Of(ctx context.Context, namespace, claim string) (string, error) {
	found, err := v.claim(ctx, client.ObjectKey{Namespace: namespace, Name: claim})
	if err != nil || found == nil || found.DeletionTimestamp != nil || found.Status.Phase != corev1.ClaimBound {
		return "", err
	}
	pv := &corev1.PersistentVolume{}
	err = v.Client.Get(ctx, client.ObjectKey{Name: found.Spec.VolumeName}, pv)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("get PersistentVolume %q: %w", found.Spec.VolumeName, err)
	}
	if ref := pv.Spec.ClaimRef; ref == nil || ref.Namespace != namespace || ref.Name != claim || ref.UID != found.UID {
		return "", nil
	}
	return pv.Name, nil
}

// Restore creates a claim, which has a data source, beside the one that it was captured of, and returns
// its volume once it is bound. Until then it says what it waits for. The claim must be marked as that of
// one rollback by RestoredByAnnotation. One that is there must have the same mark and source.
func (v *Volumes) Restore(ctx context.Context, beside *corev1.PersistentVolumeClaim, node func(context.Context) (string, error)) (volume, waits string, err error) {
	key := client.ObjectKeyFromObject(beside)
	found, err := v.claim(ctx, key)
	if err != nil {
		return "", "", err
	}
	if found == nil {
		found = beside.DeepCopy()
		if err := v.Client.Create(ctx, found); err != nil {
			return "", "", fmt.Errorf("create PersistentVolumeClaim %q: %w", key.Name, err)
		}
	}
	if !isFor(found, beside) || found.DeletionTimestamp != nil {
		return "", "", apierrors.NewForbidden(corev1.Resource("persistentvolumeclaims"), key.Name, errors.New("it was created or deleted by another client"))
	}
	if found.Status.Phase == corev1.ClaimBound {
		return v.proved(ctx, found)
	}
	if err := v.Choose(ctx, found, node); err != nil {
		return "", "", err
	}
	return "", fmt.Sprintf("PersistentVolumeClaim %q to be bound", key.Name), nil
}

// isFor reports whether a claim is the one beside another claim: it has the mark and, if that is known, the source.
func isFor(claim, beside *corev1.PersistentVolumeClaim) bool {
	return claim.Annotations[v1alpha1.RestoredByAnnotation] == beside.Annotations[v1alpha1.RestoredByAnnotation] &&
		(beside.Spec.DataSource == nil || equality.Semantic.DeepEqual(claim.Spec.DataSource, beside.Spec.DataSource))
}

// proved returns the volume of a claim, if it was made for just this claim.
func (v *Volumes) proved(ctx context.Context, claim *corev1.PersistentVolumeClaim) (string, string, error) {
	pv, err := v.volume(ctx, claim.Spec.VolumeName)
	if err != nil {
		return "", "", err
	}
	if !restore.Provisioned(pv, claim) {
		return "", "", apierrors.NewForbidden(corev1.Resource("persistentvolumes"), pv.Name,
			fmt.Errorf("it was not provisioned for PersistentVolumeClaim %q, which was bound to it because it was Available: delete it, or have it reserved for another claim", claim.Name))
	}
	return pv.Name, "", nil
}

// Swap binds the claim to a volume, whatever claim the volume was bound to. The claim that had that name before is
// deleted, unless it is bound to a volume that is not in keep. It returns what it waits for; empty once the claim is
// bound. The volumes in keep and the one to be used are retained. A volume that is smaller than the claim wants is to be
// made larger then: what was asked of it before, and not done yet, is asked again.
func (v *Volumes) Swap(ctx context.Context, want *corev1.PersistentVolumeClaim, volume string, keep ...string) (waits string, err error) {
	key := client.ObjectKeyFromObject(want)
	now, err := v.claim(ctx, key)
	if err != nil {
		return "", err
	}
	if now != nil && now.Spec.VolumeName == volume && now.DeletionTimestamp == nil {
		if now.Status.Phase == corev1.ClaimBound {
			return "", v.enlarge(ctx, now, want.Spec.Resources.Requests[corev1.ResourceStorage])
		}
		return fmt.Sprintf("PersistentVolumeClaim %q to be bound", key.Name), nil
	}
	if now != nil && now.DeletionTimestamp == nil && now.Status.Phase == corev1.ClaimBound && !slices.Contains(keep, now.Spec.VolumeName) {
		return "", apierrors.NewForbidden(corev1.Resource("persistentvolumeclaims"), key.Name,
			fmt.Errorf("it has PersistentVolume %q, which is not of this rollback: delete it if its data is not needed", now.Spec.VolumeName))
	}
	if err := v.retain(ctx, volume, keep); err != nil {
		return "", err
	}
	if waits, err := v.remove(ctx, now); waits != "" || err != nil {
		return waits, err
	}
	pv, err := v.volume(ctx, volume)
	if err != nil {
		return "", err
	}
	if waits, err := v.reserve(ctx, pv, key); waits != "" || err != nil {
		return waits, err
	}
	if err := v.Client.Create(ctx, fitting(want, pv)); err != nil && !apierrors.IsAlreadyExists(err) {
		return "", fmt.Errorf("create PersistentVolumeClaim %q: %w", key.Name, err)
	}
	return fmt.Sprintf("PersistentVolumeClaim %q to be bound", key.Name), nil
}

// retain keeps volumes from being reclaimed.
func (v *Volumes) retain(ctx context.Context, volume string, keep []string) error {
	for _, name := range keep {
		err := v.SetPolicy(ctx, name, corev1.PersistentVolumeReclaimRetain)
		if err != nil && !errors.Is(err, ErrGone) && !errors.Is(err, ErrForeign) {
			return err
		}
	}
	return v.SetPolicy(ctx, volume, corev1.PersistentVolumeReclaimRetain)
}

// reserve makes a volume wait for a claim of this name, after the claim that it was bound to is gone.
func (v *Volumes) reserve(ctx context.Context, pv *corev1.PersistentVolume, key client.ObjectKey) (waits string, err error) {
	ref := pv.Spec.ClaimRef
	if ref.UID != "" {
		bound, err := v.claim(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name})
		if err != nil {
			return "", err
		}
		if bound != nil && bound.UID == ref.UID {
			if waits, err := v.remove(ctx, bound); waits != "" || err != nil {
				return waits, err
			}
		}
	}
	if ref.UID == "" && ref.Name == key.Name {
		return "", nil
	}
	patch := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q},"spec":{"claimRef":{"apiVersion":"v1","kind":"PersistentVolumeClaim","namespace":%q,"name":%q,"uid":null,"resourceVersion":null}}}`,
		pv.ResourceVersion, key.Namespace, key.Name)
	if err := v.Client.Patch(ctx, pv, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return "", fmt.Errorf("reserve PersistentVolume %q for PersistentVolumeClaim %q: %w", pv.Name, key.Name, err)
	}
	return "", nil
}

// enlarge has a claim that is bound ask for a size, if that is more than it asks for. One that may not, because its
// class does not allow it any more or because of a quota, stays as it is.
func (v *Volumes) enlarge(ctx context.Context, claim *corev1.PersistentVolumeClaim, size resource.Quantity) error {
	if asked := claim.Spec.Resources.Requests[corev1.ResourceStorage]; size.Cmp(asked) <= 0 {
		return nil
	}
	patch := fmt.Appendf(nil, `{"spec":{"resources":{"requests":{"storage":%q}}}}`, size.String())
	err := v.Client.Patch(ctx, claim, client.RawPatch(types.MergePatchType, patch))
	if err != nil && !apierrors.IsForbidden(err) {
		return fmt.Errorf("have PersistentVolumeClaim %q ask for %s again: %w", claim.Name, size.String(), err)
	}
	return nil
}

// remove deletes a claim as it was read, so that none is deleted that was bound since, and says that it waits until the
// claim is gone.
func (v *Volumes) remove(ctx context.Context, claim *corev1.PersistentVolumeClaim) (waits string, err error) {
	if claim == nil {
		return "", nil
	}
	if claim.DeletionTimestamp == nil {
		err := v.Client.Delete(ctx, claim, client.Preconditions{UID: &claim.UID, ResourceVersion: &claim.ResourceVersion})
		if client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("delete PersistentVolumeClaim %q: %w", claim.Name, err)
		}
	}
	return fmt.Sprintf("PersistentVolumeClaim %q to be deleted", claim.Name), nil
}

// fitting returns the claim as it can be bound to the volume.
func fitting(want *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) *corev1.PersistentVolumeClaim {
	claim := want.DeepCopy()
	claim.Spec.VolumeName, claim.Spec.DataSource, claim.Spec.DataSourceRef = pv.Name, nil, nil
	claim.Spec.StorageClassName, claim.Spec.VolumeMode = ptr.To(pv.Spec.StorageClassName), pv.Spec.VolumeMode
	delete(claim.Annotations, corev1.BetaStorageClassAnnotation)
	if len(claim.Spec.AccessModes) == 0 || slices.ContainsFunc(claim.Spec.AccessModes, func(m corev1.PersistentVolumeAccessMode) bool {
		return !slices.Contains(pv.Spec.AccessModes, m)
	}) {
		claim.Spec.AccessModes = pv.Spec.AccessModes
	}
	size, asked := pv.Spec.Capacity[corev1.ResourceStorage], claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if asked.IsZero() || asked.Cmp(size) > 0 {
		claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: size}
	}
	return claim
}

// Discard deletes a volume that was restored, and the claim beside the old one. Of that only its name, mark and source
// count: the volume of a claim whose source is not known is left to its reclaim policy. It returns what it waits for.
func (v *Volumes) Discard(ctx context.Context, beside *corev1.PersistentVolumeClaim, volume string) (waits string, err error) {
	claim, err := v.claim(ctx, client.ObjectKeyFromObject(beside))
	if err != nil {
		return "", err
	}
	if claim != nil && !isFor(claim, beside) {
		claim = nil // of another rollback, or of a user
	}
	if claim != nil && volume == "" && claim.Status.Phase == corev1.ClaimBound && beside.Spec.DataSource != nil {
		if volume, _, err = v.proved(ctx, claim); err != nil && !errors.Is(err, ErrGone) && !errors.Is(err, ErrForeign) && !apierrors.IsForbidden(err) {
			return "", err
		}
	}
	if volume != "" {
		if err := v.LetGo(ctx, volume, corev1.PersistentVolumeReclaimDelete); err != nil {
			return "", err
		}
	}
	return v.remove(ctx, claim)
}

// Remove deletes the claim of that name, if it has this volume. It returns what it waits for.
func (v *Volumes) Remove(ctx context.Context, key client.ObjectKey, volume string) (waits string, err error) {
	claim, err := v.claim(ctx, key)
	if err != nil || claim == nil || claim.Spec.VolumeName != volume {
		return "", err
	}
	return v.remove(ctx, claim)
}
