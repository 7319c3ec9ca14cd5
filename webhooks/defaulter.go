package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	jsonpatch "github.com/evanphx/json-patch/v5"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"waybill.dev/waybill/api/v1alpha1"
)

// defaults fill in what the user left out; old is nil on create.
type defaults[T object] interface {
	fill(ctx context.Context, obj, old T) error
}

// defaulter fills in defaults by the rules of a kind, and counts its decisions. Whatever the user
// wrote stays exactly as written: 2m does not become 2m0s, which would show up as a difference to
// everybody who compares git with the cluster.
type defaulter[T object] struct {
	kind     string
	defaults defaults[T]
	decoder  admission.Decoder
	empty    func() T
}

var _ admission.Handler = &defaulter[*v1alpha1.ApplicationInstallation]{}

// Handle implements admission.Handler.
func (d *defaulter[T]) Handle(ctx context.Context, req admission.Request) admission.Response {
	if req.Operation != admissionv1.Create && req.Operation != admissionv1.Update {
		return admission.Allowed("")
	}
	var filled []byte
	ctx = admission.NewContextWithRequest(ctx, req)
	_, err := observe(ctx, d.kind, operationDefault, func(ctx context.Context) (_ admission.Warnings, err error) {
		filled, err = d.filled(ctx, req)
		return nil, err
	})
	if err != nil {
		var status apierrors.APIStatus
		if errors.As(err, &status) {
			return admission.Errored(status.Status().Code, err)
		}
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(req.Object.Raw, filled)
}

// filled returns the object as the user wrote it, with the defaults added if it can be decoded.
func (d *defaulter[T]) filled(ctx context.Context, req admission.Request) ([]byte, error) {
	obj := d.empty()
	if d.decoder.DecodeRaw(req.Object, obj) != nil {
		return req.Object.Raw, nil // the schema comes next, and names the field; the validator decodes it, too
	}
	var old T
	if len(req.OldObject.Raw) > 0 {
		old = d.empty()
		if err := d.decoder.DecodeRaw(req.OldObject, old); err != nil {
			return nil, apierrors.NewBadRequest("decode old object: " + err.Error())
		}
	}
	before, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("encode object: %w", err)
	}
	if err := d.defaults.fill(ctx, obj, old); err != nil {
		return nil, err
	}
	after, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("encode object: %w", err)
	}
	// Both went through our types, so the difference is exactly what was filled in.
	difference, err := jsonpatch.CreateMergePatch(before, after)
	if err != nil {
		return nil, fmt.Errorf("compare with defaults: %w", err)
	}
	filled, err := jsonpatch.MergePatch(req.Object.Raw, difference)
	if err != nil {
		return nil, fmt.Errorf("fill in defaults: %w", err)
	}
	return filled, nil
}
