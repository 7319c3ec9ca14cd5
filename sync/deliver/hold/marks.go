package hold

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// Marks are the annotations that name the holder of an object for those who deliver it. Client must not read
// from a cache.
type Marks struct {
	Client client.Client
	// Manager is the field manager that writes them, and Value who holds: NAMESPACE/NAME.
	Manager, Value string
	// Yield leaves the marks of others.
	Yield bool
}

// Put marks an object. One that does not exist is left out.
func (m Marks) Put(ctx context.Context, ref v1alpha1.ObjectReference) error {
	return m.set(ctx, ref, m.Value)
}

// Drop removes the mark, unless it is another one's.
func (m Marks) Drop(ctx context.Context, ref v1alpha1.ObjectReference) error {
	return m.set(ctx, ref, "")
}

func (m Marks) set(ctx context.Context, ref v1alpha1.ObjectReference, value string) error {
	mapping, err := m.Client.RESTMapper().RESTMapping(schema.GroupKind{Group: ref.Group, Kind: ref.Kind})
	if meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find kind %s: %w", ref.Kind, err)
	}
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(mapping.GroupVersionKind)
	err = m.Client.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, o)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("get %s %q: %w", ref.Kind, ref.Name, err)
	}
	is := o.GetAnnotations()[v1alpha1.HeldByAnnotation]
	if is == value || value == "" && is != m.Value || m.Yield && is != "" && is != m.Value {
		return nil
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.HeldByAnnotation, value)
	if value == "" {
		patch = fmt.Appendf(nil, `{"metadata":{"annotations":{%q:null}}}`, v1alpha1.HeldByAnnotation)
	}
	err = m.Client.Patch(ctx, o, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(m.Manager))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("mark %s %q: %w", ref.Kind, ref.Name, err)
	}
	return nil
}
