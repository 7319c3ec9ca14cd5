package diff

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/deliver/hold"
	"waybill.dev/waybill/sync/manifest"
)

// heldBy says which ApplicationRollback holds an object that is delivered; empty if none does, or if
// something else is wanted of it by now.
func (d delivery) heldBy(object manifest.Object, live *unstructured.Unstructured, id manifest.ID) string {
	if d.owner == nil {
		return ""
	}
	owner := *d.owner
	if d.owns(live) { // which knows the hub, too
		owner, _ = apply.OwnerOf(live)
	}
	for _, h := range d.holds {
		if h.Kind != id.Kind || h.Group != id.Group || h.Namespace != id.Namespace || h.Name != id.Name {
			continue
		}
		wanted := manifest.Object{Unstructured: object.DeepCopy()}
		wanted.SetNamespace(id.Namespace)
		if d.as != "" {
			annotations := wanted.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[v1alpha1.ResourceUIDAnnotation] = string(d.as)
			wanted.SetAnnotations(annotations)
		}
		if apply.Leaves(h, owner, wanted) {
			return held(h.Namespace, h.Rollback, h.Since)
		}
	}
	return ""
}

// held says by which ApplicationRollback or ApplicationSnapshot something is held, and since when.
func held(namespace, rollback string, since metav1.Time) string {
	by := hold.Describe(types.NamespacedName{Namespace: namespace, Name: rollback})
	return fmt.Sprintf("held by %s since %s", by, since.UTC().Format(time.RFC3339))
}

// supposes reports whether the user asks for another desired state than the cluster has.
func (j *job) supposes() bool {
	return j.version != "" || len(j.options.values) > 0 || len(j.definitions) > 0 || len(j.files) > 0
}

// keepHeld has what a release consists of stay as it is, if a rollback holds the installation and the
// desired state is what it was then; and so those of its objects that one of their own namespace holds.
func (j *job) keepHeld(inst *v1alpha1.ApplicationInstallation, changes []change) {
	if j.supposes() || inst.Status.ObservedGeneration != inst.Generation {
		return
	}
	for i := range changes {
		if c := &changes[i]; !c.refused {
			if why := heldOf(inst, c.id); why != "" {
				c.keep(why)
			}
		}
	}
}

// heldOf says who holds an object of a release; empty if it is not held.
func heldOf(inst *v1alpha1.ApplicationInstallation, id manifest.ID) string {
	if h := inst.Status.ReleaseHold; h.Holds() {
		return held(inst.Namespace, h.Rollback, h.Since)
	}
	ref := v1alpha1.ObjectReference{Group: id.Group, Kind: id.Kind, Namespace: id.Namespace, Name: id.Name}
	for _, h := range inst.Status.Held {
		if h.ObjectReference == ref && h.Holds() {
			return held(h.Namespace, h.Rollback, h.Since)
		}
	}
	return ""
}
