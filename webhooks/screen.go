package webhooks

import (
	"context"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"waybill.dev/waybill/api/expansion"
	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/webhooks/intake"
)

// entry is implemented by rules of kinds whose creation requires certain rights, whatever is in the
// object. They are checked before it is decoded.
type entry interface {
	entryNeeds(namespace string) (resource string, wanted []need)
}

// screen decides whether a request may be decoded.
type screen struct {
	access  *access
	decoded *intake.Budget
}

// admit refuses users who lack the rights of an entry, and objects with too many values, and then
// waits until there is memory to decode the request, which release gives back. The returned context
// knows the rights that were checked.
//
// Deletions, and what replaces an object that is too large, are never refused for the size of the
// old object.
func (s *screen) admit(ctx context.Context, req admission.Request, rules any) (_ context.Context, release func(), err error) {
	if e, ok := rules.(entry); ok && req.Operation == admissionv1.Create {
		resource, wanted := e.entryNeeds(req.Namespace)
		if err := s.access.checkOn(ctx, v1alpha1.GroupVersion.WithResource(resource).GroupResource(), req.Name, wanted); err != nil {
			return ctx, nil, err
		}
		ctx = holding(ctx, wanted)
	}
	values, err := expansion.JSONValues(req.Object.Raw, expansion.DefaultJSONValues)
	if err != nil {
		return ctx, nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("%s %q is too large: %v", req.Kind.Kind, req.Name, err))
	}
	old, _ := expansion.JSONValues(req.OldObject.Raw, expansion.DefaultJSONValues) // it is stored already
	release, err = s.decoded.Acquire(ctx, intake.DecodedSize(values+old))
	if errors.Is(err, intake.ErrBusy) {
		return ctx, nil, apierrors.NewTooManyRequests(err.Error(), 1)
	}
	return ctx, release, err
}
