package applicationrollback

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/data/scale"
)

// scaleDown brings the application to rest. Its volumes are retained first: a StatefulSet may delete its
// claims when it is scaled down.
func scaleDown(ctx context.Context, s *scope) (v1alpha1.RollbackPhase, error) {
	if err := s.checkHeld(ctx); err != nil {
		return v1alpha1.RollbackScalingDown, err
	}
	for _, v := range s.obj.Status.Volumes {
		if v.Before == "" {
			continue
		}
		if err := s.volumes().SetPolicy(ctx, v.Before, corev1.PersistentVolumeReclaimRetain); err != nil {
			return v1alpha1.RollbackScalingDown, err
		}
	}
	if waits, err := s.quiet(ctx); waits || err != nil {
		return v1alpha1.RollbackScalingDown, err
	}
	return v1alpha1.RollbackRestoring, nil
}

// quiet scales everything to zero that may use the volumes, and reports whether it waits for Pods.
func (s *scope) quiet(ctx context.Context) (waits bool, err error) {
	for _, held := range s.obj.Status.Held {
		if held.Group != "apps" || held.Kind != "Deployment" && held.Kind != "StatefulSet" {
			continue
		}
		if err := scale.Down(ctx, s.Live, v1alpha1.ScaledWorkload{ObjectReference: held.ObjectReference}); err != nil {
			return false, err
		}
	}
	var claims []string
	for _, v := range s.obj.Status.Volumes {
		claims = append(claims, v.Claim, v.Beside)
	}
	pods, err := scale.Using(ctx, s.Live, s.obj.Namespace, claims)
	if err != nil || len(pods) == 0 {
		return false, err
	}
	s.waits = fmt.Sprintf("Pod %q to end, which uses a volume of the application", pods[0])
	if len(pods) > 1 {
		s.waits = fmt.Sprintf("%d Pods to end, which use volumes of the application: %q is one", len(pods), pods[0])
	}
	return true, nil
}

// restoreVolumes has every volume of the snapshot restored beside the old one.
func restoreVolumes(ctx context.Context, s *scope) (v1alpha1.RollbackPhase, error) {
	d, err := s.source(ctx)
	if err != nil {
		return v1alpha1.RollbackRestoring, err
	}
	var waits []string
	for i := range s.obj.Status.Volumes {
		v := &s.obj.Status.Volumes[i]
		if v.After != "" {
			continue
		}
		beside, err := s.besideClaim(ctx, v, d)
		if err != nil {
			return v1alpha1.RollbackRestoring, err
		}
		volume, waiting, err := s.volumes().Restore(ctx, beside, func(ctx context.Context) (string, error) {
			return s.volumes().NodeOf(ctx, s.obj.Namespace, v.Claim, v.Before)
		})
		if err != nil {
			return v1alpha1.RollbackRestoring, err
		}
		if waiting != "" {
			waits = append(waits, waiting)
			continue
		}
		if v.Before == "" {
			policy, err := s.volumes().Policy(ctx, volume)
			if err != nil {
				return v1alpha1.RollbackRestoring, err
			}
			v.BeforePolicy = string(policy)
		}
		v.After = volume
	}
	if len(waits) > 0 {
		s.waits = strings.Join(waits[:min(len(waits), shown)], ", ")
		return v1alpha1.RollbackRestoring, nil
	}
	return v1alpha1.RollbackSwapping, nil
}

// besideClaim returns the claim that a volume is restored to.
func (s *scope) besideClaim(ctx context.Context, v *v1alpha1.RollbackVolume, d *definitions) (*corev1.PersistentVolumeClaim, error) {
	ref, ok := d.content.Spec.VolumeSnapshotRefs[v.Claim]
	if !ok || d.claims[v.Claim] == nil {
		return nil, refused("the snapshot does not have PersistentVolumeClaim %q any more", v.Claim)
	}
	size, err := s.restoreSize(ctx, ref)
	if err != nil {
		return nil, err
	}
	spec := d.claims[v.Claim].Spec.DeepCopy()
	if least, err := resource.ParseQuantity(size); err == nil && least.Cmp(spec.Resources.Requests[corev1.ResourceStorage]) > 0 {
		spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: least}
	}
	spec.Selector = nil // a volume that is provisioned has no labels
	claim := s.marked(v, ref.Name)
	spec.DataSource = claim.Spec.DataSource
	claim.Spec = *spec
	return claim, nil
}

// marked returns what tells the claim that a volume is restored to from claims of other clients: its mark, and its
// source, unless the name of that is not known.
func (s *scope) marked(v *v1alpha1.RollbackVolume, snapshot string) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace:   s.obj.Namespace,
		Name:        v.Beside,
		Annotations: map[string]string{v1alpha1.RestoredByAnnotation: s.mark()},
	}}
	if snapshot != "" {
		claim.Spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: ptr.To(volumeSnapshotKind.Group), Kind: volumeSnapshotKind.Kind, Name: snapshot}
	}
	return claim
}

// swapVolumes puts the restored volumes under the names of the claims.
func swapVolumes(ctx context.Context, s *scope) (v1alpha1.RollbackPhase, error) {
	if waits, err := s.quiet(ctx); waits || err != nil {
		return v1alpha1.RollbackSwapping, err
	}
	d, err := s.source(ctx)
	if err != nil {
		return v1alpha1.RollbackSwapping, err
	}
	var waits []string
	for i := range s.obj.Status.Volumes {
		v := &s.obj.Status.Volumes[i]
		if v.Swapped {
			continue
		}
		waiting, err := s.swap(ctx, v, s.claim(v.Claim, d), v.After, v.Before)
		if err != nil {
			return v1alpha1.RollbackSwapping, err
		}
		if waiting != "" {
			waits = append(waits, waiting)
			continue
		}
		v.Swapped = true
	}
	if len(waits) > 0 {
		s.waits = strings.Join(waits[:min(len(waits), shown)], ", ")
		return v1alpha1.RollbackSwapping, nil
	}
	return v1alpha1.RollbackApplying, nil
}

// swap binds a claim to a volume and, once it is bound, gives the volume the policy that volumes of the
// claim have. The other volume stays retained.
func (s *scope) swap(ctx context.Context, v *v1alpha1.RollbackVolume, claim *corev1.PersistentVolumeClaim, volume, other string) (waits string, err error) {
	var keep []string
	if other != "" {
		keep = append(keep, other)
	}
	waits, err = s.volumes().Swap(ctx, claim, volume, keep...)
	if waits != "" || err != nil {
		return waits, err
	}
	return "", s.volumes().SetPolicy(ctx, volume, corev1.PersistentVolumeReclaimPolicy(v.BeforePolicy))
}

// claim returns the definition of a claim, with the mark of a held object. Without any, it is that which
// its volume needs.
func (s *scope) claim(name string, d *definitions) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{}
	if d != nil && d.claims[name] != nil {
		claim = d.claims[name].DeepCopy()
	}
	claim.Namespace, claim.Name = s.obj.Namespace, name
	if claim.Annotations == nil {
		claim.Annotations = map[string]string{}
	}
	claim.Annotations[v1alpha1.HeldByAnnotation] = s.heldBy()
	return claim
}
