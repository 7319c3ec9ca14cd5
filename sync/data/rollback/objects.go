package rollback

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster/watch"
)

// FieldManager is the field manager of what a rollback writes to objects that no controller delivers.
const FieldManager = "waybill-rollback"

// Objects makes objects as they are defined. Client must not read from a cache.
type Objects struct {
	Client client.Client
}

// Apply makes an object exactly as it is defined: fields that the definition does not have are removed.
// marks are annotations that it gets besides; made are those that it gets if it does not exist. It
// reports whether it waits for the object that was there before to be gone.
//
// An object of which a field cannot be changed is deleted and created again, if it is of a kind of
// Kubernetes itself: what the deletion of other objects sets in motion is not known.
func (o *Objects) Apply(ctx context.Context, want *unstructured.Unstructured, marks, made map[string]string) (waits bool, err error) {
	live, err := o.get(ctx, want)
	if err != nil {
		return false, err
	}
	if live == nil {
		created := annotated(annotated(want, marks), made)
		return false, describe("create", want, o.Client.Create(ctx, created, client.FieldOwner(FieldManager)))
	}
	if live.GetDeletionTimestamp() != nil {
		return true, nil
	}
	desired := exact(want, live, marks)
	if same(desired, live) {
		return false, nil
	}
	err = o.update(ctx, desired, live)
	if !apierrors.IsInvalid(err) || !watch.IsBuiltIn(want.GroupVersionKind().Group) {
		return false, describe("update", want, err)
	}
	return o.replace(ctx, desired, live, err)
}

// Remove deletes an object if it has the annotation.
func (o *Objects) Remove(ctx context.Context, ref *unstructured.Unstructured, key, value string) error {
	live, err := o.get(ctx, ref)
	if err != nil || live == nil || live.GetAnnotations()[key] != value {
		return err
	}
	uid := live.GetUID()
	err = o.Client.Delete(ctx, live, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	return describe("delete", live, client.IgnoreNotFound(err))
}

// get returns the object as it is; nil if there is none.
func (o *Objects) get(ctx context.Context, ref *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(ref.GroupVersionKind())
	err := o.Client.Get(ctx, client.ObjectKeyFromObject(ref), live)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return live, describe("get", ref, err)
}

// update writes the object. If Waybill or Helm delivers it, the fields become theirs first, so that they
// can remove them again when they take up the object.
func (o *Objects) update(ctx context.Context, desired, live *unstructured.Unstructured) error {
	if manager := deliverer(live); manager != "" {
		applied := desired.DeepCopy()
		for _, field := range []string{"resourceVersion", "uid", "managedFields", "ownerReferences", "finalizers"} {
			unstructured.RemoveNestedField(applied.Object, "metadata", field)
		}
		delete(applied.Object, "status")
		err := o.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner(manager), client.ForceOwnership)
		if err != nil {
			return err
		}
		desired.SetResourceVersion(applied.GetResourceVersion())
	}
	return o.Client.Update(ctx, desired, client.FieldOwner(FieldManager))
}

// deliverer returns the field manager that delivers an object by server-side apply; empty if there is
// none.
func deliverer(live *unstructured.Unstructured) string {
	for _, entry := range live.GetManagedFields() {
		if entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" &&
			slices.Contains([]string{v1alpha1.FieldManager, v1alpha1.HelmFieldManager}, entry.Manager) {
			return entry.Manager
		}
	}
	return ""
}

// replace deletes the object, if it can be created again, and says that it waits for it to be gone. What
// it owns stays: the Pods of a StatefulSet, for example.
func (o *Objects) replace(ctx context.Context, desired, live *unstructured.Unstructured, refused error) (bool, error) {
	trial := desired.DeepCopy()
	for _, field := range []string{"resourceVersion", "uid"} {
		unstructured.RemoveNestedField(trial.Object, "metadata", field)
	}
	// What is invalid as a new object is refused before it is noticed that the name is taken.
	if err := o.Client.Create(ctx, trial, client.DryRunAll); !apierrors.IsAlreadyExists(err) {
		return false, describe("update", live, refused)
	}
	uid := live.GetUID()
	err := o.Client.Delete(ctx, live, client.Preconditions{UID: &uid}, client.PropagationPolicy(propagation(live)))
	return true, describe("delete", live, client.IgnoreNotFound(err))
}

// propagation leaves Pods of a StatefulSet to the next one, and claims that it owns where they are.
func propagation(live *unstructured.Unstructured) metav1.DeletionPropagation {
	if live.GroupVersionKind().GroupKind() == (schema.GroupKind{Group: "apps", Kind: "StatefulSet"}) {
		return metav1.DeletePropagationOrphan
	}
	return metav1.DeletePropagationBackground
}

// ours are the prefixes of labels and annotations that say who delivers an object, or what Kubernetes
// does with it: they stay as they are.
var ours = []string{"apps.waybill.dev/", "kubernetesapplicationresource.apps.waybill.dev/", "kubernetes.io/application",
	"deployment.kubernetes.io/", "kubectl.kubernetes.io/last-applied-configuration", "meta.helm.sh/"}

// exact returns the object as it is to be written in place of live.
func exact(want, live *unstructured.Unstructured, marks map[string]string) *unstructured.Unstructured {
	desired := want.DeepCopy()
	desired.SetResourceVersion(live.GetResourceVersion())
	desired.SetUID(live.GetUID())
	desired.SetOwnerReferences(live.GetOwnerReferences())
	desired.SetFinalizers(live.GetFinalizers())
	desired.SetLabels(kept(want.GetLabels(), live.GetLabels()))
	desired.SetAnnotations(kept(want.GetAnnotations(), live.GetAnnotations()))
	desired = annotated(desired, marks)
	if status, ok := live.Object["status"]; ok {
		desired.Object["status"] = status
	}
	if secrets, ok := live.Object["secrets"]; ok && live.GetKind() == "ServiceAccount" {
		desired.Object["secrets"] = secrets
	}
	return desired
}

// kept returns want, with what live says of who delivers it.
func kept(want, live map[string]string) map[string]string {
	is := func(key, _ string) bool {
		return slices.ContainsFunc(ours, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
	}
	result := maps.Clone(want)
	maps.DeleteFunc(result, is)
	for key, value := range live {
		if is(key, value) {
			if result == nil {
				result = map[string]string{}
			}
			result[key] = value
		}
	}
	if len(result) == 0 {
		return nil
	}
	return result
}

func annotated(obj *unstructured.Unstructured, marks map[string]string) *unstructured.Unstructured {
	if len(marks) == 0 {
		return obj
	}
	marked := obj.DeepCopy()
	annotations := marked.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(annotations, marks)
	marked.SetAnnotations(annotations)
	return marked
}

// same reports whether an update would change nothing, apart from what the API server fills in.
func same(desired, live *unstructured.Unstructured) bool {
	now := live.DeepCopy()
	for _, field := range []string{"managedFields", "creationTimestamp", "generation", "selfLink"} {
		unstructured.RemoveNestedField(now.Object, "metadata", field)
	}
	return equality.Semantic.DeepEqual(desired.Object, now.Object)
}

func describe(doing string, obj *unstructured.Unstructured, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s %q: %w", doing, obj.GetKind(), obj.GetName(), err)
}
