package webhooks

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"
	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"waybill.dev/waybill/api/v1alpha1"
)

// defaults fill in what the user left out; old is nil on create.
type defaults[T object] interface {
	fill(ctx context.Context, obj, old T) error
}

// defaulter fills in defaults by the rules of a kind, and counts its decisions. Whatever the user
// wrote stays exactly as written: 2m does not become 2m0s, which would show up as a difference to
// users who compare git with the cluster.
type defaulter[T object] struct {
	kind     string
	defaults defaults[T]
	screen   *screen
	reader[T]
}

var _ admission.Handler = &defaulter[*v1alpha1.ApplicationInstallation]{}

// Handle implements admission.Handler.
func (d *defaulter[T]) Handle(ctx context.Context, req admission.Request) admission.Response {
	if req.Operation != admissionv1.Create && req.Operation != admissionv1.Update {
		return admission.Allowed("")
	}
	var response admission.Response
	ctx = admission.NewContextWithRequest(ctx, req)
	_, err := observe(ctx, d.kind, operationDefault, func(ctx context.Context) (_ admission.Warnings, err error) {
		ctx, release, err := d.screen.admit(ctx, req, d.defaults)
		if err != nil {
			return nil, err
		}
		defer release()
		response, err = d.patch(ctx, req)
		return nil, err
	})
	if err != nil {
		return responseTo(err)
	}
	return response
}

// patch returns what adds the defaults.
func (d *defaulter[T]) patch(ctx context.Context, req admission.Request) (admission.Response, error) {
	filled, err := d.filled(ctx, req)
	if err != nil {
		return admission.Response{}, err
	}
	if bytes.Equal(filled, req.Object.Raw) {
		return admission.Allowed(""), nil // which takes no comparison of all that is in it
	}
	return admission.PatchResponseFromRaw(req.Object.Raw, filled), nil
}

// filled returns the object as the user wrote it, with the defaults added if it can be decoded.
func (d *defaulter[T]) filled(ctx context.Context, req admission.Request) ([]byte, error) {
	obj, err := d.decode("object", req.Object)
	if err != nil {
		return req.Object.Raw, nil // the schema comes next, and names the field; the validator decodes it, too
	}
	var old T
	if len(req.OldObject.Raw) > 0 {
		if old, err = d.decode("old object", req.OldObject); err != nil {
			return nil, err
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
	if bytes.Equal(before, after) {
		return req.Object.Raw, nil
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
