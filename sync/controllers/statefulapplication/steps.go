package statefulapplication

import (
	"context"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/data/restore"
	"waybill.dev/waybill/sync/excerpt"
	"waybill.dev/waybill/sync/manifest"
	kernel "waybill.dev/waybill/sync/reconcile"
)

// createClaims creates the claims, and waits for those whose volumes are made at once.
func (w *work) createClaims(ctx context.Context) (v1alpha1.RestorePhase, kernel.Outcome, error) {
	if err := w.findVolumes(ctx); err != nil {
		return "", kernel.Outcome{}, err
	}
	var problems []manifest.Problem
	for _, claim := range w.plan.Claims {
		found, err := w.createClaim(ctx, claim)
		if err != nil {
			return "", kernel.Outcome{}, err
		}
		if found != nil {
			problems = append(problems, *found)
		}
	}
	if err := w.refused(len(w.plan.Claims), problems); err != nil {
		return "", kernel.Outcome{}, err
	}
	waiting, lost, err := w.unbound(ctx, true)
	if waiting = append(waiting, lost...); err != nil || len(waiting) > 0 {
		return v1alpha1.RestoreClaims, volumesMissing(waiting), err
	}
	return v1alpha1.RestoreObjects, kernel.Outcome{}, nil
}

func volumesMissing(claims []string) kernel.Outcome {
	return kernel.Outcome{
		Unknown: v1alpha1.ProgressingReason,
		Message: "waiting for the volumes of PersistentVolumeClaims " + excerpt.Names(claims, maxNames),
	}
}

// refused records what was created of so many objects, and returns an error if some were refused.
func (w *work) refused(attempted int, problems []manifest.Problem) error {
	status := w.obj.Status.Restore
	status.Created, status.Problems = int32(attempted-len(problems)), kernel.Problems(problems)
	if len(problems) == 0 {
		return nil
	}
	return kernel.Failed(v1alpha1.RestoreRefusedReason, "%d of %s created; refused: %s",
		status.Created, excerpt.Count(int(status.Objects), "object"), problems[0].Error()+excerpt.AndMore(len(problems)-1))
}

// createClaim creates one claim and, in another namespace than the snapshot's, what leads to the
// snapshot of its volume.
func (w *work) createClaim(ctx context.Context, claim restore.Claim) (*manifest.Problem, error) {
	o := claim.DeepCopy()
	v := w.volumes[claim.Source]
	if v == nil {
		return w.create(ctx, o)
	}
	live, err := w.find(ctx, o)
	if err != nil {
		return refusal(o, err)
	}
	if live != nil && made(live, w.obj) {
		return nil, nil // what led to the snapshot may have been removed
	}
	snapshot := v.snapshot.Name
	if v.snapshot.Namespace != w.obj.Namespace {
		snapshot = staticName(w.obj, claim.GetName())
		for _, static := range w.statics(v, snapshot) {
			if found, err := w.create(ctx, static); found != nil || err != nil {
				return found, err
			}
		}
	}
	if err := v.fill(o, snapshot); err != nil {
		return nil, err
	}
	return w.create(ctx, o)
}

// statics returns a VolumeSnapshot for the namespace of the application, and the content that leads from
// it to the snapshot of the driver. That stays when they are deleted.
func (w *work) statics(v *volume, name string) []*object {
	spec := map[string]any{
		"driver": v.content.Spec.Driver, "deletionPolicy": string(snapshotv1.VolumeSnapshotContentRetain),
		"source":            map[string]any{"snapshotHandle": *v.content.Status.SnapshotHandle},
		"volumeSnapshotRef": map[string]any{"namespace": w.obj.Namespace, "name": name},
	}
	if class := v.content.Spec.VolumeSnapshotClassName; class != nil {
		spec["volumeSnapshotClassName"] = *class
	}
	if mode := v.content.Spec.SourceVolumeMode; mode != nil {
		spec["sourceVolumeMode"] = string(*mode)
	}
	content := static("VolumeSnapshotContent", "", name)
	content.Object["spec"] = spec
	snapshot := static("VolumeSnapshot", w.obj.Namespace, name)
	snapshot.Object["spec"] = map[string]any{"source": map[string]any{"volumeSnapshotContentName": name}}
	return []*object{content, snapshot}
}

func static(kind, namespace, name string) *object {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetGroupVersionKind(snapshotv1.SchemeGroupVersion.WithKind(kind))
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// unbound returns the names of the claims that have no volume yet, or are being deleted; with immediate only those
// whose volumes are made before a Pod uses them. lost are those that are gone, or that others have created again. The
// volume of a claim must have been made for it.
func (w *work) unbound(ctx context.Context, immediate bool) (waiting, lost []string, err error) {
	for _, claim := range w.plan.Claims {
		name := claim.GetName()
		if _, ok := w.content.Spec.VolumeSnapshotRefs[claim.Source]; !ok {
			continue
		}
		live, err := w.find(ctx, claim.Unstructured)
		if err != nil {
			return nil, nil, fmt.Errorf("get PersistentVolumeClaim %s: %w", name, err)
		}
		switch {
		case live == nil || !made(live, w.obj):
			lost = append(lost, name)
		case live.GetDeletionTimestamp() != nil:
			waiting = append(waiting, name)
		case claimPhase(live) == corev1.ClaimBound:
			if err := w.prove(ctx, live); err != nil {
				return nil, nil, err
			}
		case !immediate || !w.waitsForPod(live):
			waiting = append(waiting, name)
		}
	}
	return waiting, lost, nil
}

// prove returns an error if a claim is bound to a volume that does not have the data of the snapshot.
func (w *work) prove(ctx context.Context, claim *object) error {
	name, _, _ := unstructured.NestedString(claim.Object, "spec", "volumeName")
	pv := &corev1.PersistentVolume{}
	err := w.Reader.Get(ctx, client.ObjectKey{Name: name}, pv)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("get PersistentVolume %s: %w", name, err)
	case err == nil && restore.Provisioned(pv, claim):
		return nil
	}
	return kernel.Failed(v1alpha1.VolumeNotRestoredReason,
		"PersistentVolume %s of PersistentVolumeClaim %s was not made from the snapshot: the claim was bound to it because it was Available; delete the claim, and what uses it, and it is created again",
		name, claim.GetName())
}

func claimPhase(claim *object) corev1.PersistentVolumeClaimPhase {
	phase, _, _ := unstructured.NestedString(claim.Object, "status", "phase")
	return corev1.PersistentVolumeClaimPhase(phase)
}

// waitsForPod reports whether the volume of a claim is made when a Pod uses it, or nothing makes it.
func (w *work) waitsForPod(claim *object) bool {
	name, _, _ := unstructured.NestedString(claim.Object, "spec", "storageClassName")
	class := w.classes[name]
	return class == nil || ptr.Deref(class.VolumeBindingMode, storagev1.VolumeBindingImmediate) == storagev1.VolumeBindingWaitForFirstConsumer
}

// createObjects creates everything else, the Application or what installs it last, and waits for the volumes.
func (w *work) createObjects(ctx context.Context) (v1alpha1.RestorePhase, kernel.Outcome, error) {
	var problems []manifest.Problem
	for _, o := range w.plan.Objects {
		found, err := w.create(ctx, o)
		if err != nil {
			return "", kernel.Outcome{}, err
		}
		if found != nil {
			problems = append(problems, *found)
		}
	}
	attempted := len(w.plan.Claims) + len(w.plan.Objects)
	if err := w.refused(attempted, problems); err != nil {
		return "", kernel.Outcome{}, err
	}
	found, err := w.create(ctx, w.plan.Last)
	if err != nil {
		return "", kernel.Outcome{}, err
	}
	if found != nil {
		problems = append(problems, *found)
	}
	if err := w.refused(attempted+1, problems); err != nil {
		return "", kernel.Outcome{}, err
	}
	return w.complete(ctx)
}

// complete ends the restore once all claims have their volumes: until then the snapshot is needed. It goes back to the
// claims if some were deleted: what uses them would begin with empty volumes.
func (w *work) complete(ctx context.Context) (v1alpha1.RestorePhase, kernel.Outcome, error) {
	waiting, lost, err := w.unbound(ctx, false)
	if err != nil {
		return "", kernel.Outcome{}, err
	}
	if len(lost) > 0 {
		return v1alpha1.RestoreClaims, kernel.Outcome{}, nil
	}
	if len(waiting) > 0 {
		outcome := volumesMissing(waiting)
		outcome.Message += w.installing(ctx)
		return v1alpha1.RestoreObjects, outcome, w.consume(ctx, waiting)
	}
	if err := w.removeStatics(ctx, w.obj); err != nil {
		return "", kernel.Outcome{}, err
	}
	w.obj.Status.Source = &v1alpha1.RestoredFrom{APIGroup: v1alpha1.Group, Kind: v1alpha1.ApplicationSnapshotKind}
	if ref := w.content.Spec.SnapshotRef; ref != nil {
		w.obj.Status.Source.Namespace, w.obj.Status.Source.Name, w.obj.Status.Source.UID = ref.Namespace, ref.Name, ref.UID
	}
	return v1alpha1.RestoreCompleted, kernel.Outcome{}, nil
}
