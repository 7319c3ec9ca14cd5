package webhooks

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/webhooks/registration"
)

// object is a pointer to one of our types.
type object interface {
	client.Object
	comparable
}

// rules are the admission rules of one kind.
type rules[T object] interface {
	// validate checks obj on its own and as the successor of old, which is nil on create. It makes
	// no look-ups.
	validate(obj, old T) (admission.Warnings, field.ErrorList)

	// review checks what needs look-ups. It is called only if obj passed validate and its spec
	// differs from that of old.
	review(ctx context.Context, obj, old T) (admission.Warnings, error)

	// specChanged reports whether obj asks for something different than old.
	specChanged(obj, old T) bool
}

// guard holds further rules, for deletions and for every update, including those that leave the
// spec alone.
type guard[T object] interface {
	guardUpdate(obj, old T) field.ErrorList
	guardDelete(ctx context.Context, old T) error
}

// validator decides by the rules of a kind, and counts its decisions.
type validator[T object] struct {
	kind   string
	rules  rules[T]
	screen *screen
	reader[T]
}

var _ admission.Handler = &validator[*v1alpha1.GitSync]{}

// Handle implements admission.Handler.
func (v *validator[T]) Handle(ctx context.Context, req admission.Request) admission.Response {
	switch req.Operation {
	case admissionv1.Create, admissionv1.Update, admissionv1.Delete:
	default:
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("operation %q is not registered", req.Operation))
	}
	ctx = admission.NewContextWithRequest(ctx, req)
	warnings, err := observe(ctx, v.kind, req.Operation, func(ctx context.Context) (admission.Warnings, error) {
		ctx, release, err := v.screen.admit(ctx, req, v.rules)
		if err != nil {
			return nil, err
		}
		defer release()
		obj, old, err := v.read(req)
		if err != nil {
			return nil, err
		}
		return v.answer(ctx, req.Operation, obj, old)
	})
	return responseTo(err).WithWarnings(warnings...)
}

func (v *validator[T]) answer(ctx context.Context, operation admissionv1.Operation, obj, old T) (admission.Warnings, error) {
	g, guarded := v.rules.(guard[T])
	switch {
	case operation == admissionv1.Delete && guarded:
		return nil, g.guardDelete(ctx, old)
	case operation == admissionv1.Delete:
		return nil, nil
	case operation == admissionv1.Update && guarded:
		return v.decide(ctx, obj, old, g.guardUpdate(obj, old)...)
	}
	return v.decide(ctx, obj, old)
}

func (v *validator[T]) decide(ctx context.Context, obj, old T, found ...*field.Error) (admission.Warnings, error) {
	warnings, errs := v.rules.validate(obj, old)
	if errs = append(errs, found...); len(errs) > 0 {
		return warnings, apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind(v.kind).GroupKind(), obj.GetName(), errs)
	}
	var none T
	if old != none && !v.rules.specChanged(obj, old) {
		return nil, nil // an earlier write was checked and warned about the same spec
	}
	more, err := v.rules.review(ctx, obj, old)
	return append(warnings, more...), err
}

// responseTo returns the response that an error stands for.
func responseTo(err error) admission.Response {
	if err == nil {
		return admission.Allowed("")
	}
	var known apierrors.APIStatus
	if !errors.As(err, &known) {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	status := known.Status()
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &status}}
}

// decisionTimeout bounds a decision with all its look-ups. It is shorter than the API server's
// timeout, so that users learn which look-up did not answer.
const decisionTimeout = registration.Timeout - time.Second

// observe makes a decision within decisionTimeout, and counts it whatever the result. Why there was
// none is logged: only its writer sees the answer.
func observe(
	ctx context.Context, kind string, operation admissionv1.Operation, decide func(context.Context) (admission.Warnings, error),
) (warnings admission.Warnings, err error) {
	ctx, cancel := context.WithTimeout(ctx, decisionTimeout)
	defer cancel()
	start, decision := time.Now(), failed
	defer func() { count(kind, string(operation), start, decision) }()
	warnings, err = decide(ctx)
	if decision = decisionOf(err); decision == failed {
		logFailure(ctx, kind, operation, err)
	}
	return warnings, err
}

// logFailure names the object, but not what is in it.
func logFailure(ctx context.Context, kind string, operation admissionv1.Operation, err error) {
	var object types.NamespacedName
	if req, reqErr := admission.RequestFromContext(ctx); reqErr == nil {
		object = types.NamespacedName{Namespace: req.Namespace, Name: req.Name}
	}
	ctrl.LoggerFrom(ctx).Error(err, "admission came to no decision", "kind", kind, "operation", operation, "namespacedName", object.String())
}
