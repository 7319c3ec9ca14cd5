package webhooks

import (
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// reader decodes the objects of a request.
type reader[T object] struct {
	decoder admission.Decoder
	empty   func() T
}

// read returns the object and the one that it replaces; old is nil on create, and obj on delete.
func (r reader[T]) read(req admission.Request) (obj, old T, err error) {
	if req.Operation != admissionv1.Delete {
		if obj, err = r.decode("object", req.Object); err != nil {
			return obj, old, err
		}
	}
	if req.Operation != admissionv1.Create {
		old, err = r.decode("old object", req.OldObject)
	}
	return obj, old, err
}

func (r reader[T]) decode(what string, raw runtime.RawExtension) (T, error) {
	obj := r.empty()
	if err := r.decoder.DecodeRaw(raw, obj); err != nil {
		return obj, apierrors.NewBadRequest("decode " + what + ": " + err.Error())
	}
	return obj, nil
}
