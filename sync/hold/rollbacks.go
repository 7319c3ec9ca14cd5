package hold

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/keyed"
)

var resource = v1alpha1.GroupVersion.WithResource("applicationrollbacks")

// Rollbacks reads the ApplicationRollbacks of a cluster, each once: it is made for one delivery. It is
// safe for concurrent use.
type Rollbacks struct {
	client dynamic.Interface
	found  keyed.Map[types.NamespacedName, *answer]
}

// answer is what reading a rollback has given: nil for one that does not exist.
type answer struct {
	once     sync.Once
	rollback *v1alpha1.ApplicationRollback
	err      error
}

// NewRollbacks returns the rollbacks of a cluster. It sends no request.
func NewRollbacks(client dynamic.Interface) *Rollbacks {
	return &Rollbacks{client: client}
}

// Holding returns the ApplicationRollback that holds an object, and what it says of the object; nil if
// by does not hold it. It sends no request if by cannot hold it, because it is in another namespace or
// the object in none. A cluster that does not serve the kind has no rollbacks.
func (r *Rollbacks) Holding(ctx context.Context, by types.NamespacedName, ref v1alpha1.ObjectReference) (*v1alpha1.ApplicationRollback, *v1alpha1.HeldObject, error) {
	if by.Name == "" || ref.Namespace == "" || by.Namespace != ref.Namespace {
		return nil, nil, nil
	}
	a := r.found.Of(by, func() *answer { return &answer{} })
	a.once.Do(func() { a.rollback, a.err = r.read(ctx, by) })
	if a.rollback == nil || a.err != nil {
		return nil, nil, a.err
	}
	if entry := Holds(a.rollback, ref); entry != nil {
		return a.rollback, entry, nil
	}
	return nil, nil, nil
}

func (r *Rollbacks) read(ctx context.Context, by types.NamespacedName) (*v1alpha1.ApplicationRollback, error) {
	found, err := r.client.Resource(resource).Namespace(by.Namespace).Get(ctx, by.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read ApplicationRollback %s: %w", by, err)
	}
	rollback := &v1alpha1.ApplicationRollback{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, rollback); err != nil {
		return nil, fmt.Errorf("read ApplicationRollback %s: %w", by, err)
	}
	return rollback, nil
}
