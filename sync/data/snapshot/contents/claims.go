package contents

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// findClaims finds the claims of Pods, of Pod templates and of volumeClaimTemplates, those that custom
// resources of the application control, and those that are components.
func (s *survey) findClaims(ctx context.Context) error {
	reasons, ephemeral := map[string]string{}, map[string]bool{}
	for _, u := range s.uses {
		switch {
		case u.GroupKind != claimKind:
		case u.ephemeral:
			ephemeral[u.name] = true
			s.leave(u.id, u.reason)
		case reasons[u.name] == "":
			reasons[u.name] = u.reason
		}
	}
	if len(reasons)+len(s.series) > 0 || s.hasCustomObjects() {
		err := s.list(ctx, claimKind.WithVersion("v1"), func(o *unstructured.Unstructured) error {
			if ephemeral[o.GetName()] {
				return nil
			}
			reason, err := s.reasonOf(ctx, o, reasons)
			if err != nil || reason == "" {
				return err
			}
			return s.add(o, reason)
		})
		if err != nil {
			return err
		}
	}
	for name, reason := range reasons {
		if key := (id{claimKind, name}); s.objects[key].Unstructured == nil {
			s.miss(key, reason+": does not exist")
		}
	}
	return s.describeClaims(ctx)
}

// reasonOf returns why a claim belongs to the application; empty if it does not.
func (s *survey) reasonOf(ctx context.Context, claim *unstructured.Unstructured, reasons map[string]string) (string, error) {
	if i := slices.IndexFunc(s.series, func(c claimSeries) bool { return c.has(claim.GetName()) }); i >= 0 {
		return s.series[i].reason, nil
	}
	if reason := reasons[claim.GetName()]; reason != "" {
		return reason, nil
	}
	root, ours, err := s.root(ctx, claim)
	if err != nil || !ours {
		return "", err
	}
	return fmt.Sprintf("%s %q made it", root.Kind, root.name), nil
}

// describeClaims fills in what is asked of claims.
func (s *survey) describeClaims(ctx context.Context) error {
	for _, key := range s.sorted() {
		if key.GroupKind != claimKind {
			continue
		}
		object := s.objects[key]
		typed := &corev1.PersistentVolumeClaim{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
			return fmt.Errorf("read PersistentVolumeClaim %q in namespace %q: %w", key.name, s.namespace, err)
		}
		claim := Claim{Object: object, StorageClass: cmp.Or(ptr.Deref(typed.Spec.StorageClassName, ""), typed.Annotations[corev1.BetaStorageClassAnnotation])}
		if typed.Status.Phase == corev1.ClaimBound {
			claim.Volume = typed.Spec.VolumeName
		}
		var err error
		if claim.Driver, err = s.driverOf(ctx, claim.Volume); err != nil {
			return err
		}
		s.claims = append(s.claims, claim)
	}
	return nil
}

// driverOf returns the CSI driver of a PersistentVolume. PersistentVolumes are not of the namespace:
// users who may not read them, as most, do without.
func (s *survey) driverOf(ctx context.Context, volume string) (string, error) {
	if volume == "" {
		return "", nil
	}
	found := &corev1.PersistentVolume{}
	if s.Volumes == nil || s.Volumes.Get(ctx, client.ObjectKey{Name: volume}, found) != nil { // a cache may not know it yet
		found = &corev1.PersistentVolume{}
	}
	var err error
	if found.Name == "" {
		err = s.Reader.Get(ctx, client.ObjectKey{Name: volume}, found)
	}
	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("get PersistentVolume %q: %w", volume, err)
	case found.Spec.CSI == nil:
		return "", nil
	}
	return found.Spec.CSI.Driver, nil
}
