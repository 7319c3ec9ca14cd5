package validation_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
)

func withHealthCheck(t *testing.T, template string) *v1alpha1.Application {
	raw, err := yaml.YAMLToJSON([]byte(template))
	require.NoError(t, err)
	return application(func(a *v1alpha1.Application) {
		a.Spec.HealthCheck = &v1alpha1.ApplicationHealthCheck{Template: runtime.RawExtension{Raw: raw}}
	})
}

// A30, A31, A59, C10
func TestValidateApplication_healthCheck(t *testing.T) {
	template := spec.Child("healthCheck", "template")
	containers := template.Child("spec", "containers")
	for name, tc := range map[string]struct {
		reason, template string
		want             field.ErrorList
	}{
		"valid":           {"one probe of one container is enough", `{spec: {containers: [{name: a, image: i, readinessProbe: {tcpSocket: {port: 80}}}, {name: b, image: i}]}}`, nil},
		"sidecar":         {"a sidecar takes part in the readiness of a Pod", `{spec: {initContainers: [{name: s, image: i, restartPolicy: Always, readinessProbe: {tcpSocket: {port: 80}}}], containers: [{name: a, image: i}]}}`, nil},
		"no probe":        {"A31", `{spec: {containers: [{name: a, image: i}]}}`, field.ErrorList{field.Required(containers, "")}},
		"liveness only":   {"says nothing of readiness", `{spec: {containers: [{name: a, image: i, livenessProbe: {tcpSocket: {port: 80}}}]}}`, field.ErrorList{field.Required(containers, "")}},
		"init container":  {"has ended before the Pod is ready", `{spec: {initContainers: [{name: s, image: i, readinessProbe: {tcpSocket: {port: 80}}}], containers: [{name: a, image: i}]}}`, field.ErrorList{field.Required(containers, "")}},
		"empty probe":     {"a probe asks something", `{spec: {containers: [{name: a, image: i, readinessProbe: {periodSeconds: 1}}]}}`, field.ErrorList{invalid(containers.Index(0).Child("readinessProbe"))}},
		"no containers":   {"no Pod", `{spec: {}}`, field.ErrorList{field.Required(containers, "")}},
		"unknown field":   {"strict decoding", `{spec: {containers: [{name: a, image: i, readynessProbe: {}, readinessProbe: {exec: {command: [x]}}}]}}`, field.ErrorList{invalid(template)}},
		"other case":      {"field names have one case", `{spec: {Containers: []}}`, field.ErrorList{invalid(template), field.Required(containers, "")}},
		"wrong type":      {"no Pod template", `{spec: [1]}`, field.ErrorList{invalid(template)}},
		"no template":     {"A30", `null`, field.ErrorList{field.Required(containers, "")}},
		"nameless":        {"containers have names and images", `{spec: {containers: [{readinessProbe: {exec: {command: [x]}}}]}}`, field.ErrorList{field.Required(containers.Index(0).Child("name"), ""), field.Required(containers.Index(0).Child("image"), "")}},
		"twice":           {"names are unique", `{spec: {containers: [{name: a, image: i, readinessProbe: {exec: {command: [x]}}}, {name: a, image: i}]}}`, field.ErrorList{field.Duplicate(containers.Index(1), "a")}},
		"other namespace": {"A38", `{metadata: {namespace: kube-system}, spec: {containers: [{name: a, image: i, readinessProbe: {exec: {command: [x]}}}]}}`, field.ErrorList{field.Invalid(template.Child("metadata", "namespace"), "kube-system", "")}},
		"label":           {"no valid metadata", `{metadata: {labels: {a: b c}}, spec: {containers: [{name: a, image: i, readinessProbe: {exec: {command: [x]}}}]}}`, field.ErrorList{field.Invalid(template.Child("metadata", "labels"), "b c", "")}},
	} {
		t.Run(name, func(t *testing.T) {
			assertErrors(t, tc.want, validation.ValidateApplication(withHealthCheck(t, tc.template), nil), tc.reason)
		})
	}
}

func TestHealthCheckTemplate_absent(t *testing.T) {
	template, errs := validation.HealthCheckTemplate(application(nil))
	assert.Nil(t, template)
	assert.Empty(t, errs, "a health check is optional")

	empty := application(func(a *v1alpha1.Application) { a.Spec.HealthCheck = &v1alpha1.ApplicationHealthCheck{} })
	_, errs = validation.HealthCheckTemplate(empty)
	assertErrors(t, field.ErrorList{field.Required(spec.Child("healthCheck", "template"), "")}, errs, "a health check needs a Pod")
}
