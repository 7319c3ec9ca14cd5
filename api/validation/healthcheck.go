package validation

import (
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/json"

	"waybill.dev/waybill/api/v1alpha1"
)

// HealthCheckTemplate decodes the Pod template of the health check, and is strict about it:
// unknown and duplicate fields are errors. It returns nil without an error where the
// Application has no health check.
func HealthCheckTemplate(obj *v1alpha1.Application) (*corev1.PodTemplateSpec, field.ErrorList) {
	if obj.Spec.HealthCheck == nil {
		return nil, nil
	}
	path := specPath.Child("healthCheck", "template")
	raw := obj.Spec.HealthCheck.Template.Raw
	if len(raw) == 0 {
		return nil, field.ErrorList{field.Required(path, "the Pod whose readiness is that of the application")}
	}
	template := &corev1.PodTemplateSpec{}
	strict, err := json.UnmarshalStrict(raw, template)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(path, field.OmitValueType{}, "is not a Pod template: "+err.Error())}
	}
	var errs field.ErrorList
	for _, s := range strict {
		errs = append(errs, field.Invalid(path, field.OmitValueType{}, s.Error()))
	}
	return template, errs
}

// validateHealthCheck says what can be said of a Pod template without the API server: the rest is for a dry run.
func validateHealthCheck(obj *v1alpha1.Application, path *field.Path) field.ErrorList {
	template, errs := HealthCheckTemplate(obj)
	if template == nil {
		return errs
	}
	meta := path.Child("template", "metadata")
	errs = append(errs, metav1validation.ValidateLabels(template.Labels, meta.Child("labels"))...)
	errs = append(errs, apivalidation.ValidateAnnotations(template.Annotations, meta.Child("annotations"))...)
	if ns := template.Namespace; ns != "" && ns != obj.Namespace {
		errs = append(errs, field.Invalid(meta.Child("namespace"), ns, "the Pod runs in the namespace of the Application"))
	}
	containers := path.Child("template", "spec", "containers")
	if len(template.Spec.Containers) == 0 {
		return append(errs, field.Required(containers, "a Pod has at least one container"))
	}
	for i := range template.Spec.Containers {
		errs = append(errs, validateContainer(&template.Spec.Containers[i], containers.Index(i))...)
	}
	errs = append(errs, duplicates(template.Spec.Containers, containers, func(c corev1.Container) string { return c.Name })...)
	if !hasReadinessProbe(&template.Spec) {
		errs = append(errs, field.Required(containers, "one container must have a readinessProbe: it says whether the application is ready"))
	}
	return errs
}

func validateContainer(c *corev1.Container, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if c.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), ""))
	} else {
		errs = append(errs, validateDNSLabel(c.Name, path.Child("name"))...)
	}
	if c.Image == "" {
		errs = append(errs, field.Required(path.Child("image"), ""))
	}
	if p := c.ReadinessProbe; p != nil && probeHandlers(p) != 1 {
		errs = append(errs, field.Invalid(path.Child("readinessProbe"), field.OmitValueType{},
			"must have exactly one of exec, httpGet, tcpSocket and grpc"))
	}
	return errs
}

// hasReadinessProbe counts sidecars too: they take part in the readiness of a Pod.
func hasReadinessProbe(spec *corev1.PodSpec) bool {
	for i := range spec.Containers {
		if spec.Containers[i].ReadinessProbe != nil {
			return true
		}
	}
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		if c.ReadinessProbe != nil && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			return true
		}
	}
	return false
}

func probeHandlers(p *corev1.Probe) int {
	n := 0
	for _, set := range []bool{p.Exec != nil, p.HTTPGet != nil, p.TCPSocket != nil, p.GRPC != nil} {
		if set {
			n++
		}
	}
	return n
}
