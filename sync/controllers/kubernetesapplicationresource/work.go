package kubernetesapplicationresource

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/deliver/inventory"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/reconcile"
)

// work is all that a job needs to know. A job may outlive the pass that started it, so it has its
// own scope, which does not change.
type work struct {
	*scope
	reconciler *Reconciler
	applier    *apply.Applier
	// delivered is what is in the cluster, or may be. Set by submit.
	delivered []manifest.ID
}

func (r *Reconciler) plan(s *scope) *work {
	frozen := *s
	frozen.kar, frozen.session = s.kar.DeepCopy(), ptr.To(*s.session)
	return &work{scope: &frozen, reconciler: r, applier: s.session.delivery.Applier()}
}

// submit delivers what is to be in the cluster. A job that was dropped may have ended after this one was
// planned: what it declared is known here.
func (w *work) submit(ctx context.Context) apply.Result {
	w.delivered = w.inventory()
	got := w.deliver(ctx)
	if got.Inventory == nil {
		got.Inventory = w.delivered
	}
	w.session.delivery.Declare(got.Inventory)
	return got
}

// deliver applies the object with the copies of its Secrets, unless it waits for some and was never
// submitted. While it is not known whether the kind has namespaces, because the cluster does not
// serve it yet, it is not known either where the copies go: then deliver applies the object alone,
// which waits for the kind by watch.
func (w *work) deliver(ctx context.Context) apply.Result {
	revoked := w.revoke(ctx)
	if revoked.Err != nil || len(revoked.Problems) > 0 || w.withheld() != nil && !w.placed() {
		revoked.Waiting = append(revoked.Waiting, w.object()) // that it was tried once does not mean that it is placed
		return revoked
	}
	object, err := w.templated()
	if err != nil {
		return w.stalled(v1alpha1.InvalidSpecReason, "spec.template: %w", err)
	}
	if len(w.kar.Spec.Secrets) == 0 {
		return w.apply(ctx, object, nil)
	}
	kind := w.kar.Spec.Template.GroupVersionKind()
	for {
		namespaced, known, err := w.applier.Namespaced(ctx, kind)
		switch {
		case err != nil:
			return apply.Result{Err: w.failed(err), Held: w.held()}
		case known && !namespaced:
			return w.stalled(v1alpha1.SecretsNeedNamespaceReason,
				"spec.secrets: %s is cluster-scoped, so there is no namespace to copy Secrets into: leave them out", kind.Kind)
		case known:
			return w.apply(ctx, object, w.secrets)
		}
		got := w.apply(ctx, object, nil)
		if got.Err != nil || len(got.Problems) > 0 || len(got.Waiting) > 0 {
			return got
		}
		w.delivered = got.Inventory // the kind is served by now: once more, with Secrets
	}
}

// stalled returns the result of a job that can do nothing until a person acts.
func (w *work) stalled(reason, format string, args ...any) apply.Result {
	return apply.Result{Err: reconcile.Stalled(reason, format, args...), Held: w.held()}
}

// templated returns the object as it should be, with the UID of the resource.
func (w *work) templated() (manifest.Object, error) {
	object, err := w.kar.Spec.Template.Object()
	if err != nil {
		return manifest.Object{}, err
	}
	annotations, _, err := unstructured.NestedStringMap(object.Object, "metadata", "annotations")
	if err != nil {
		return manifest.Object{}, err
	}
	if annotations == nil {
		annotations = make(map[string]string)
	}
	annotations[v1alpha1.ResourceUIDAnnotation] = string(w.kar.UID)
	if adopt, set := w.kar.Annotations[v1alpha1.AdoptAnnotation]; set {
		annotations[v1alpha1.AdoptAnnotation] = adopt
	}
	object.SetAnnotations(annotations)
	return manifest.Object{Unstructured: object}, nil
}

// revoke deletes the copies of Secrets that may not leave the hub, also of those that the spec no
// longer names. Unlike other copies that it no longer names, they do not wait for the object to be
// as it should be.
func (w *work) revoke(ctx context.Context) apply.Result {
	copies := w.copiesOf(slices.Concat(w.barred, w.disowned))
	if len(copies) == 0 {
		return apply.Result{Inventory: w.delivered, Held: w.held()}
	}
	result := w.delete(ctx, copies)
	w.delivered = inventory.Merge(inventory.Diff(w.delivered, copies), result.Inventory)
	result.Inventory, result.Held, result.Err = w.delivered, w.held(), w.failed(result.Err)
	return result
}

// copiesOf returns the delivered copies of some Secrets, in whatever namespace: it may have been
// another when they were delivered.
func (w *work) copiesOf(secrets []string) []manifest.ID {
	return slices.DeleteFunc(w.copies(w.delivered), func(id manifest.ID) bool {
		return !isSecret(id) || !slices.ContainsFunc(secrets, func(name string) bool { return w.kar.PropagatedSecretName(name) == id.Name })
	})
}

// apply applies the object and copies of some Secrets, and deletes the copies of those that the
// spec no longer names. Copies that are kept stay as they are.
func (w *work) apply(ctx context.Context, object manifest.Object, secrets []secret) apply.Result {
	objects := []manifest.Object{object}
	for _, source := range secrets {
		objects = append(objects, w.copyOf(source))
	}
	kept := w.kept(secrets)
	request := apply.Request{
		Owner:            w.owner,
		Objects:          objects,
		Inventory:        inventory.Diff(w.delivered, kept),
		Unkept:           w.copies(w.delivered),
		Prune:            true,
		DefaultNamespace: metav1.NamespaceDefault,
		Held:             w.held(),
		Intent:           func(ctx context.Context, ids []manifest.ID) error { return w.declare(ctx, inventory.Merge(kept, ids)) },
	}
	result := w.applier.Apply(ctx, request)
	if w.takeAway(ctx, w.immutable(result.Problems, secrets)) {
		result = w.applier.Apply(ctx, request)
	}
	result.Problems, result.Inventory, result.Err = w.advised(result.Problems), inventory.Merge(kept, result.Inventory), w.failed(result.Err)
	return result
}

// immutable returns the copies that cannot become what they should be, because their Secret was
// created again with another type.
func (w *work) immutable(problems []manifest.Problem, secrets []secret) []manifest.ID {
	var ids []manifest.ID
	for _, source := range secrets {
		id := w.copyID(source.name)
		if slices.ContainsFunc(problems, func(p manifest.Problem) bool {
			return p.ID == id && p.Reason == apply.ReasonInvalid && strings.Contains(p.Message, "immutable")
		}) {
			ids = append(ids, id)
		}
	}
	return ids
}

// takeAway deletes copies, and reports whether they are gone. It returns false if there are none.
func (w *work) takeAway(ctx context.Context, copies []manifest.ID) bool {
	if len(copies) == 0 {
		return false
	}
	result := w.delete(ctx, copies)
	return result.Err == nil && len(result.Inventory) == 0
}

// delete deletes those of the delivered objects that are still ours.
func (w *work) delete(ctx context.Context, ids []manifest.ID) apply.Result {
	return w.applier.Apply(ctx, apply.Request{Owner: w.owner, Inventory: ids, Prune: true, Unkept: w.copies(ids)})
}

// copies returns those of some identities that are not the object's.
func (w *work) copies(ids []manifest.ID) []manifest.ID {
	return slices.DeleteFunc(slices.Clone(ids), w.sameObject)
}

// kept returns the copies that are neither applied nor deleted: those of Secrets that do not exist
// right now and, if none is to be applied, those of all.
func (w *work) kept(applied []secret) []manifest.ID {
	var kept []manifest.ID
	for _, name := range w.missing {
		kept = append(kept, w.copyID(name))
	}
	if len(applied) == 0 {
		for _, source := range w.secrets {
			kept = append(kept, w.copyID(source.name))
		}
	}
	return w.amongDelivered(kept)
}

// amongDelivered returns those of some identities that are in the cluster, or may be.
func (w *work) amongDelivered(ids []manifest.ID) []manifest.ID {
	return inventory.Diff(ids, inventory.Diff(ids, w.delivered))
}

// declare records copies of Secrets that are about to be created, so that a crash leaves none
// behind that is not recorded: the spec may name others by then. The object needs no record,
// because the spec names it for good.
func (w *work) declare(ctx context.Context, ids []manifest.ID) error {
	fresh := inventory.Diff(ids, w.delivered)
	if !slices.ContainsFunc(fresh, func(id manifest.ID) bool { return !w.sameObject(id) }) {
		return nil
	}
	before := w.kar.DeepCopy()
	before.Status.Inventory = nil
	kar := before.DeepCopy()
	kar.Status.Inventory = recorded(ids)
	w.session.delivery.Declare(ids)
	if err := w.reconciler.kernel.RecordChange(ctx, w.reconciler.Client, before, kar); err != nil {
		return recordFailed(err)
	}
	return nil
}

// recordFailed returns the error for a hub that did not record what is about to be applied.
func recordFailed(err error) error {
	return reconcile.Failed(v1alpha1.ProgressingWithRetryReason, "record in status.inventory, on the hub, what is about to be applied: %w", err)
}

// recorded returns an inventory as a status holds it. It is never large: one object, and a copy of
// each Secret.
func recorded(ids []manifest.ID) *v1alpha1.Inventory {
	entries := inventory.Encode(ids)
	return &v1alpha1.Inventory{Entries: entries, Count: int32(len(entries))}
}

// advised makes problems with copies of Secrets say what to do about a conflict: a copy has no
// manifest to annotate.
func (w *work) advised(problems []manifest.Problem) []manifest.Problem {
	for i, p := range problems {
		if what, found := strings.CutSuffix(p.Message, apply.AdoptionHint); found && !w.sameObject(p.ID) {
			problems[i].Message = what + "delete that Secret, or give the resource template another name"
		}
	}
	return problems
}

// failed returns the error for a failure of the cluster as a whole, which says nothing about the
// object; nil for none. What the hub refused meanwhile is not the cluster's fault, and carries its
// reason already.
func (w *work) failed(err error) error {
	if err == nil {
		return nil
	}
	var ofHub *reconcile.Error
	if errors.As(err, &ofHub) {
		return ofHub
	}
	return reconcile.Failed(v1alpha1.ClusterUnreachableReason, "cluster %s: %w", w.clusterKey(), err)
}

// remove deletes those of the delivered objects that are still ours.
func (w *work) remove(ctx context.Context, ids []manifest.ID) apply.Result {
	result := w.delete(ctx, ids) // what was refused is not in Waiting: no event announces when it would be accepted
	if result.Err != nil {
		result.Err = reconcile.Failed(v1alpha1.DeleteFailedReason, "%w", fmt.Errorf("cluster %s: %w", w.clusterKey(), result.Err))
	}
	return result
}
