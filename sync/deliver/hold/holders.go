package hold

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/keyed"
)

// Holder is an ApplicationRollback, or an ApplicationSnapshot, that holds an object.
type Holder struct {
	// Name as By returns it, UID, and the resource version at which it was read.
	Name    string
	UID     types.UID
	Version string
	// Created is when it was created.
	Created time.Time
	// AtWork says that it is at work on what it holds.
	AtWork bool
}

// Holders reads the ApplicationRollbacks and ApplicationSnapshots of a cluster, each once: it is made for one
// delivery. It is safe for concurrent use.
type Holders struct {
	client dynamic.Interface

	found keyed.Map[types.NamespacedName, *answer]
}

// answer is what reading a holder has given, and what it holds; nil for one that does not exist.
type answer struct {
	once   sync.Once
	holder *Holder
	holds  func(v1alpha1.ObjectReference) *v1alpha1.HeldObject
	err    error
}

// NewHolders returns the rollbacks and snapshots of a cluster. It sends no request.
func NewHolders(client dynamic.Interface) *Holders {
	return &Holders{client: client}
}

// Holding returns the holder of an object, and what is known of the object there; nil if by does not hold
// it. It sends no request if by cannot hold it, because it is in another namespace or the object in none. A
// cluster that does not serve the kind has no holders.
func (r *Holders) Holding(ctx context.Context, by types.NamespacedName, ref v1alpha1.ObjectReference) (*Holder, *v1alpha1.HeldObject, error) {
	if by.Name == "" || ref.Namespace == "" || by.Namespace != ref.Namespace {
		return nil, nil, nil
	}
	a := r.found.Of(by, func() *answer { return &answer{} })
	a.once.Do(func() { a.read(ctx, r.client, by) })
	if a.holder == nil || a.err != nil {
		return nil, nil, a.err
	}
	if entry := a.holds(ref); entry != nil {
		return a.holder, entry, nil
	}
	return nil, nil, nil
}

// Resource returns the resource and the name of who By names.
func Resource(by types.NamespacedName) (schema.GroupVersionResource, types.NamespacedName) {
	if name, ok := snapshotOf(by.Name); ok {
		return v1alpha1.GroupVersion.WithResource("applicationsnapshots"), types.NamespacedName{Namespace: by.Namespace, Name: name}
	}
	return v1alpha1.GroupVersion.WithResource("applicationrollbacks"), by
}

func (a *answer) read(ctx context.Context, client dynamic.Interface, by types.NamespacedName) {
	resource, key := Resource(by)
	found, err := client.Resource(resource).Namespace(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return
	}
	if err == nil {
		a.holder = &Holder{Name: by.Name, UID: found.GetUID(), Version: found.GetResourceVersion(), Created: found.GetCreationTimestamp().Time}
		err = a.understand(found.Object)
	}
	if err != nil {
		a.err = fmt.Errorf("read %s: %w", Describe(by), err)
	}
}

// understand reads what is held.
func (a *answer) understand(object map[string]any) error {
	if _, ok := snapshotOf(a.holder.Name); ok {
		s := &v1alpha1.ApplicationSnapshot{}
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, s)
		a.holder.AtWork = true
		a.holds = func(ref v1alpha1.ObjectReference) *v1alpha1.HeldObject { return heldBySnapshot(s, ref) }
		return err
	}
	r := &v1alpha1.ApplicationRollback{}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, r)
	a.holder.AtWork = UnderWay(r)
	a.holds = func(ref v1alpha1.ObjectReference) *v1alpha1.HeldObject { return Holds(r, ref) }
	return err
}

// heldBySnapshot returns the entry of an object that a snapshot holds, because it has scaled it to zero, or
// what delivers that; nil if it does not.
func heldBySnapshot(s *v1alpha1.ApplicationSnapshot, ref v1alpha1.ObjectReference) *v1alpha1.HeldObject {
	if ref.Namespace != s.Namespace || !slices.Contains(s.Status.Held, ref) {
		return nil
	}
	return &v1alpha1.HeldObject{ObjectReference: ref}
}
