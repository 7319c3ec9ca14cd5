package apply

import (
	"crypto/sha256"
	"encoding/json"
	"strings"
	"time"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/health"
)

// digest identifies content; the zero value stands for none.
type digest [16]byte

func digestOf(content []byte) digest {
	sum := sha256.Sum256(content)
	return digest(sum[:16])
}

// live is all that is kept of a live object. It is not changed once it is created, so it may be
// shared.
type live struct {
	uid     types.UID
	version string // resourceVersion
	owner   string // annotation apps.waybill.dev/owner
	// fields identifies the set of fields that are ours. So it changes when another manager takes
	// one of them, but not when another manager adds a field.
	fields digest
	// stamp identifies fields, and when they were last written by us or in our name.
	stamp digest
	// keeper names, for a message, what manages an object that has no owner annotation; empty for nothing.
	keeper string
	// heldBy is the annotation apps.waybill.dev/held-by, which any client may have written; empty if
	// it names nothing that could hold the object.
	heldBy string
	// deleting: the object has a deletionTimestamp.
	deleting bool
	// keep: the object must not be pruned, says an annotation that we set.
	keep bool
	// status and message are its health; in a watch of metadata they are empty.
	status  health.Status
	message string
	// reported is its field status; nil if that is not known, or not to be kept.
	reported *Status
}

// observed is a live object with its name, as it passes through a feed.
type observed struct {
	name types.NamespacedName
	live *live
}

// GetObjectMeta lets an observed take the place of the object that it was created from in the
// stores of client-go.
func (o *observed) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: o.name.Namespace, Name: o.name.Name}
}

// observe reduces an object to what is kept of it. If full is set, the object has a spec and a
// status, from which its health follows.
func observe(object metav1.Object, full bool) *observed {
	annotations := object.GetAnnotations()
	// A string that many objects have is one copy for those that are observed between two garbage
	// collections, because the handle is not kept: for the objects of a list, almost all.
	sets, times := owned(object)
	fields := fieldsDigest(sets)
	l := &live{
		uid:      object.GetUID(),
		version:  object.GetResourceVersion(),
		owner:    unique.Make(annotations[v1alpha1.OwnerAnnotation]).Value(),
		fields:   fields,
		stamp:    digestOf(append(fields[:], strings.Join(times, " ")...)),
		keeper:   KeeperOf(object),
		deleting: object.GetDeletionTimestamp() != nil,
		keep:     keeps(object),
		heldBy:   heldBy(object),
	}
	if u, ok := object.(*unstructured.Unstructured); ok && full {
		l.status, l.message = health.Of(u)
	}
	return &observed{
		name: types.NamespacedName{Namespace: unique.Make(object.GetNamespace()).Value(), Name: object.GetName()},
		live: l,
	}
}

// pruneDisabled is the value of the prune annotation that keeps an object.
const pruneDisabled = "disabled"

// keeps reports whether a live object has the prune annotation that keeps it, and got it from a manifest
// that Waybill applied: another user who may edit the object does not decide what happens to an object
// that has left its source.
func keeps(object metav1.Object) bool {
	if object.GetAnnotations()[v1alpha1.PruneAnnotation] != pruneDisabled {
		return false
	}
	sets, _ := owned(object)
	for _, fields := range sets {
		set, _ := fields.(map[string]any)
		if _, ours, err := unstructured.NestedFieldNoCopy(set, "f:metadata", "f:annotations", "f:"+v1alpha1.PruneAnnotation); ours && err == nil {
			return true
		}
	}
	return false
}

// owned returns the sets of fields of an object that are ours, one for each entry of its managed fields, and
// when each was last written.
func owned(object metav1.Object) (sets []any, times []string) {
	if u, ok := object.(*unstructured.Unstructured); ok {
		return ownedUnstructured(u)
	}
	for _, entry := range object.GetManagedFields() {
		if entry.FieldsV1 == nil || !isOurs(entry.Manager, string(entry.Operation), entry.Subresource) {
			continue
		}
		var fields any
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
			continue
		}
		at := ""
		if entry.Time != nil {
			at = entry.Time.UTC().Format(time.RFC3339)
		}
		sets, times = append(sets, fields), append(times, at)
	}
	return sets, times
}

// ownedUnstructured reads managedFields in place: the accessor of Unstructured
// would convert all of them.
func ownedUnstructured(u *unstructured.Unstructured) (sets []any, times []string) {
	metadata, _ := u.Object["metadata"].(map[string]any)
	entries, _ := metadata["managedFields"].([]any)
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		text := func(key string) string { s, _ := entry[key].(string); return s }
		if entry["fieldsV1"] != nil && isOurs(text("manager"), text("operation"), text("subresource")) {
			sets, times = append(sets, entry["fieldsV1"]), append(times, text("time"))
		}
	}
	return sets, times
}

// isOurs reports whether an entry of managedFields belongs to our applies, or to Helm, which does
// not apply.
func isOurs(manager, operation, subresource string) bool {
	if subresource != "" {
		return false
	}
	return manager == v1alpha1.HelmFieldManager ||
		manager == v1alpha1.FieldManager && operation == string(metav1.ManagedFieldsOperationApply)
}

// fieldsDigest digests sets of fields with their keys in the order in which JSON encodes a map: the
// API server sorts them differently, and a decoder loses the order.
func fieldsDigest(owned []any) digest {
	if len(owned) == 0 {
		return digest{}
	}
	text, err := json.Marshal(owned)
	if err != nil {
		return digest{}
	}
	return digestOf(text)
}
