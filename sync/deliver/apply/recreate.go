package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster/watch"
)

// forcing is how far an object may be deleted and created again for a field that cannot be changed.
type forcing int

const (
	// never: it stays as it is.
	never forcing = iota
	// builtIn: if it is of a kind of Kubernetes itself, because the owner asks for it. What the deletion
	// of a custom object takes with it is for its controller to say.
	builtIn
	// anyKind: of whatever kind, because the manifest asks for it.
	anyKind
)

// forcingOf returns how far a manifest is forced: its annotation wins over what the owner asks for.
func forcingOf(annotation any, owners bool) forcing {
	switch {
	case annotation == "true":
		return anyKind
	case annotation == nil && owners:
		return builtIn
	default:
		return never
	}
}

// statefulSetKind is the one kind of which the Pods and claims outlive the deletion.
var statefulSetKind = appsv1.SchemeGroupVersion.WithKind("StatefulSet").GroupKind()

// holdsData reports whether the deletion of an object of a kind takes data with it that no manifest has:
// volumes, snapshots, all objects of a namespace or of a kind, and all that an object of ours delivers.
func holdsData(kind schema.GroupKind) bool {
	switch kind.Group {
	case corev1.GroupName:
		return slices.Contains([]string{"Namespace", "PersistentVolume", "PersistentVolumeClaim"}, kind.Kind)
	case v1alpha1.Group, "snapshot.storage.k8s.io", "groupsnapshot.storage.k8s.io":
		return true
	default:
		return kind == crdKind
	}
}

// forces reports whether objects of a kind may be deleted and created again.
func (f forcing) forces(kind schema.GroupKind) bool {
	switch {
	case f == never || holdsData(kind):
		return false
	default:
		return f == anyKind || watch.IsBuiltIn(kind.Group)
	}
}

// mayRecreate reports whether an item that was not applied is to be created again: because of a field
// that cannot be changed, in an object that is ours, and not to be kept.
func (r *run) mayRecreate(it *item, err error) bool {
	live := it.sight.live
	return it.action != Recreated && it.force.forces(it.kind.gvk.GroupKind()) && isImmutableError(err) &&
		live != nil && live.owner == r.holder.mark && !live.keep && it.annotation(v1alpha1.PruneAnnotation) != pruneDisabled
}

// mayAskForForce reports whether an annotation would let the object be created again.
func (it *item) mayAskForForce() bool {
	kind := it.kind.gvk.GroupKind()
	return !it.force.forces(kind) && anyKind.forces(kind) && it.annotation(v1alpha1.ForceAnnotation) == nil
}

// isImmutableError reports whether a write failed because of a field that cannot be changed.
func isImmutableError(err error) bool {
	return apierrors.IsInvalid(err) && isImmutable(rootCause(err))
}

// recreate deletes an object of which a field cannot be changed, once it is known that the API server
// would accept the new one. It returns false, and has recorded why, if the object stays for now.
func (r *run) recreate(ctx context.Context, it *item, cause error) bool {
	for try := 0; ; try++ {
		propagation, refusal := r.propagation(ctx, it)
		if refusal == "" {
			refusal = r.tryCreate(ctx, it)
		}
		if refusal != "" {
			it.refuse(ReasonInvalid, fmt.Sprintf("%s; it is not recreated: %s", rootCause(cause), refusal))
			return false
		}
		if !r.lookUp(ctx, it) {
			return false
		}
		live := it.sight.live
		if live == nil || live.deleting || live.owner != r.holder.mark {
			return true // decide says what to do about that
		}
		err := r.client(it.kind, it.id).Delete(ctx, it.id.Name, metav1.DeleteOptions{
			Preconditions:     &metav1.Preconditions{UID: ptr.To(live.uid), ResourceVersion: ptr.To(live.version)},
			PropagationPolicy: ptr.To(propagation),
		})
		switch {
		case err == nil:
			it.action = Recreated
			logr.FromContextOrDiscard(ctx).Info("Deleted to be created again, because a field cannot be changed", "object", it.id.String(), "cause", rootCause(cause))
			return true
		case apierrors.IsNotFound(err) && !watch.IsKindNotFound(err):
			return true
		case try == maxLooks || !mayHaveChanged(err):
			r.refused(ctx, it, err)
			return false
		}
	}
}

// propagation returns how an object is deleted: after what it owns, so that of two Jobs, for example,
// only one runs at a time. The Pods and claims of a StatefulSet stay, for the one that is created then;
// what would lose them is refused.
func (r *run) propagation(ctx context.Context, it *item) (propagation metav1.DeletionPropagation, refusal string) {
	if it.kind.gvk.GroupKind() != statefulSetKind {
		return metav1.DeletePropagationForeground, ""
	}
	live, err := r.as(it.id).Dynamic().Resource(it.kind.gvr).Namespace(it.id.Namespace).Get(ctx, it.id.Name, metav1.GetOptions{})
	if err != nil {
		return "", "it cannot be read: " + rootCause(err)
	}
	return metav1.DeletePropagationOrphan, lossOf(live.Object, it.body)
}

// lossOf says what would be lost if a live StatefulSet were deleted for another one; empty for nothing.
func lossOf(live, wanted map[string]any) string {
	retention, _, _ := unstructured.NestedString(live, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted")
	before, _, _ := unstructured.NestedMap(live, "spec", "selector")
	now, _, _ := unstructured.NestedMap(wanted, "spec", "selector")
	switch {
	case retention == string(appsv1.DeletePersistentVolumeClaimRetentionPolicyType):
		return "spec.persistentVolumeClaimRetentionPolicy.whenDeleted says that its claims go with it"
	case !apiequality.Semantic.DeepEqual(before, now):
		return "with another spec.selector it would not find its Pods again"
	default:
		return ""
	}
}

// Recreates reports whether an Apply for the owner of a live object would delete it and create it again,
// after the API server has answered with an error that it cannot be changed; force is Request.Force.
func Recreates(live, wanted *unstructured.Unstructured, force bool, err error) bool {
	annotations, kind := wanted.GetAnnotations(), wanted.GroupVersionKind().GroupKind()
	var asked any
	if value, found := annotations[v1alpha1.ForceAnnotation]; found {
		asked = value
	}
	return forcingOf(asked, force).forces(kind) && isImmutableError(err) && !keeps(live) && annotations[v1alpha1.PruneAnnotation] != pruneDisabled &&
		(kind != statefulSetKind || lossOf(live.Object, wanted.Object) == "")
}

const (
	// trial is appended to the name of an object that is only tried.
	trial = "-dry-run"
	// maxTrial is the length up to which names are valid for objects of every kind; the shortest limit is
	// that of CronJobs.
	maxTrial = 52
)

// tryCreate has the API server check, under another name, that an object could be created. It returns
// why not; empty if it could be.
func (r *run) tryCreate(ctx context.Context, it *item) (refusal string) {
	object := &unstructured.Unstructured{Object: maps.Clone(it.body)}
	metadata := maps.Clone(it.metadata)
	name := it.id.Name
	if most := maxTrial - len(trial); len(name) > most {
		name = strings.TrimRight(name[:most], "-.")
	}
	metadata["name"] = name + trial
	object.Object["metadata"] = metadata
	_, err := r.as(it.id).Dynamic().Resource(it.kind.gvr).Namespace(it.id.Namespace).Create(ctx, object, metav1.CreateOptions{
		DryRun: []string{metav1.DryRunAll}, FieldManager: v1alpha1.FieldManager, FieldValidation: metav1.FieldValidationStrict,
	})
	if err == nil || apierrors.IsAlreadyExists(err) { // which is found out last
		return ""
	}
	return "creating it would fail: " + rootCause(err)
}
