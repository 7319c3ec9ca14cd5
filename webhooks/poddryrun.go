package webhooks

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
)

// podDryRun asks the API server whether a health check is a valid Pod. It exists only if
// Options.PodDryRun asks for it. The right to create Pods is a separate ClusterRole in the chart,
// which may be bound in some namespaces alone: elsewhere there is no dry run.
type podDryRun struct {
	client  kubernetes.Interface
	timeout time.Duration
}

// try returns errors only if the API server rejects the Pod as invalid; any other obstacle is a
// warning.
func (p *podDryRun) try(ctx context.Context, obj *v1alpha1.Application) (admission.Warnings, field.ErrorList) {
	template, errs := validation.HealthCheckTemplate(obj)
	if template == nil || len(errs) > 0 {
		return nil, errs
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	path := field.NewPath("spec", "healthCheck", "template")
	permitted, err := p.permitted(ctx, obj.Namespace)
	if err != nil {
		return untried(path, err), nil
	}
	if !permitted {
		return nil, nil
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "waybill-health-", Namespace: obj.Namespace,
			Labels: template.Labels, Annotations: template.Annotations,
		},
		Spec: template.Spec,
	}
	_, err = p.client.CoreV1().Pods(obj.Namespace).Create(ctx, pod, metav1.CreateOptions{
		DryRun: []string{metav1.DryRunAll}, FieldManager: v1alpha1.FieldManager,
	})
	switch {
	case err == nil:
		return nil, nil
	case apierrors.IsInvalid(err):
		return nil, invalidPod(path, err)
	}
	return untried(path, err), nil
}

func untried(path *field.Path, err error) admission.Warnings {
	return admission.Warnings{path.String() + " could not be validated by a dry run: " + err.Error()}
}

// permitted reports whether this process may create Pods in the namespace.
func (p *podDryRun) permitted(ctx context.Context, namespace string) (bool, error) {
	review, err := p.client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "create", Resource: "pods", Namespace: namespace,
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("review access: %w", err)
	}
	return review.Status.Allowed, nil
}

// invalidPod maps every cause to the field of the template that it is about.
func invalidPod(path *field.Path, err error) field.ErrorList {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil || len(status.Status().Details.Causes) == 0 {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, err.Error())}
	}
	var errs field.ErrorList
	for _, cause := range status.Status().Details.Causes {
		at := path
		if cause.Field != "" {
			at = path.Child(strings.Split(cause.Field, ".")[0], strings.Split(cause.Field, ".")[1:]...)
		}
		errs = append(errs, field.Invalid(at, field.OmitValueType{}, cause.Message))
	}
	return errs
}
