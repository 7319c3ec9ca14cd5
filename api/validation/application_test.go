package validation_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
)

func application(change func(*v1alpha1.Application)) *v1alpha1.Application {
	a := &v1alpha1.Application{
		ObjectMeta: metav1.ObjectMeta{Name: "wordpress", Namespace: "blog"},
		Spec: v1alpha1.ApplicationSpec{
			Type:     "WordPress",
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "wordpress"}},
			Components: []v1alpha1.ApplicationComponent{
				{Kind: "Service", Name: "wordpress"},
				{Group: "apps", Version: "v1", Kind: "StatefulSet", Name: "wordpress"},
			},
			Dependencies: []string{"mysql"},
		},
	}
	if change != nil {
		change(a)
	}
	return a
}

func withExpression(key string, op metav1.LabelSelectorOperator, values ...string) func(*v1alpha1.Application) {
	return func(a *v1alpha1.Application) {
		a.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: op, Values: values}}}
	}
}

func withComponents(components ...v1alpha1.ApplicationComponent) func(*v1alpha1.Application) {
	return func(a *v1alpha1.Application) { a.Spec.Components = components }
}

func withHealthExpression(e v1alpha1.HealthExpression) func(*v1alpha1.Application) {
	return func(a *v1alpha1.Application) { a.Spec.HealthExpressions = []v1alpha1.HealthExpression{e} }
}

// A7-A10, A43, C2
func TestValidateApplication_accepts(t *testing.T) {
	for reason, change := range map[string]func(*v1alpha1.Application){
		"the usual":                nil,
		"a name with dots":         func(a *v1alpha1.Application) { a.Name = "blog.example.com" },
		"a set-based selector":     withExpression("app", metav1.LabelSelectorOpIn, "a", "b"),
		"a selector of all":        func(a *v1alpha1.Application) { a.Spec.Selector = &metav1.LabelSelector{} },
		"every object of a kind":   withComponents(v1alpha1.ApplicationComponent{Kind: "ConfigMap"}),
		"one name, two kinds":      nil,
		"a name with a colon":      withComponents(v1alpha1.ApplicationComponent{Group: "rbac.authorization.k8s.io", Kind: "Role", Name: "a:b"}),
		"nothing but a type":       func(a *v1alpha1.Application) { a.Spec.Components, a.Spec.Dependencies = nil, nil },
		"a health expression":      withHealthExpression(v1alpha1.HealthExpression{Kind: "Job", Current: "status.succeeded > 0", Failed: "has(status.failed) && metadata.generation > 1"}),
		"ownership":                func(a *v1alpha1.Application) { a.Spec.Ownership = v1alpha1.OwnershipObserve },
		"free labels of their own": func(a *v1alpha1.Application) { a.Labels = map[string]string{"team": "a"} },
	} {
		t.Run(reason, func(t *testing.T) {
			assertErrors(t, nil, validation.ValidateApplication(application(change), nil), reason)
		})
	}
}

// A27, A28, A29, C2, C39
func TestValidateApplication_refuses(t *testing.T) {
	selector, components, deps := spec.Child("selector"), spec.Child("components"), spec.Child("dependencies")
	match, expr := selector.Child("matchExpressions").Index(0), spec.Child("healthExpressions").Index(0)
	for name, tc := range map[string]struct {
		reason string
		change func(*v1alpha1.Application)
		want   field.ErrorList
	}{
		"name":         {"no DNS subdomain", func(a *v1alpha1.Application) { a.Name = "Word_Press" }, field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), "Word_Press", "")}},
		"label":        {"no valid metadata", func(a *v1alpha1.Application) { a.Labels = map[string]string{"a": "b c"} }, field.ErrorList{field.Invalid(field.NewPath("metadata", "labels"), "b c", "")}},
		"no type":      {"json has no omitempty", func(a *v1alpha1.Application) { a.Spec.Type = "" }, field.ErrorList{field.Required(spec.Child("type"), "")}},
		"long type":    {"it is an index", func(a *v1alpha1.Application) { a.Spec.Type = strings.Repeat("a", 254) }, field.ErrorList{field.TooLong(spec.Child("type"), "", 0)}},
		"no selector":  {"nil", func(a *v1alpha1.Application) { a.Spec.Selector = nil }, field.ErrorList{field.Required(selector, "")}},
		"operator":     {"unknown", withExpression("a", "Like", "b"), field.ErrorList{field.Invalid(match.Child("operator"), metav1.LabelSelectorOperator("Like"), "")}},
		"In":           {"needs values", withExpression("a", metav1.LabelSelectorOpIn), field.ErrorList{field.Required(match.Child("values"), "")}},
		"Exists":       {"takes no values", withExpression("a", metav1.LabelSelectorOpExists, "b"), field.ErrorList{field.Forbidden(match.Child("values"), "")}},
		"key":          {"no label key", withExpression("a b", metav1.LabelSelectorOpExists), field.ErrorList{field.Invalid(match.Child("key"), "a b", "")}},
		"match label":  {"no label value", func(a *v1alpha1.Application) { a.Spec.Selector.MatchLabels["a"] = "b c" }, field.ErrorList{field.Invalid(selector.Child("matchLabels"), "b c", "")}},
		"no kind":      {"what is it", withComponents(v1alpha1.ApplicationComponent{Name: "a"}), field.ErrorList{field.Required(components.Index(0).Child("kind"), "")}},
		"plural":       {"a path, not a kind", withComponents(v1alpha1.ApplicationComponent{Kind: "apps/v1"}), field.ErrorList{field.Invalid(components.Index(0).Child("kind"), "apps/v1", "")}},
		"group":        {"no group", withComponents(v1alpha1.ApplicationComponent{Group: "apps/v1", Kind: "Deployment"}), field.ErrorList{field.Invalid(components.Index(0).Child("group"), "apps/v1", "")}},
		"listed twice": {"versions are hints", withComponents(v1alpha1.ApplicationComponent{Kind: "Pod", Version: "v1"}, v1alpha1.ApplicationComponent{Kind: "Pod", Version: "v2"}), field.ErrorList{field.Duplicate(components.Index(1), "Pod/")}},
		"path":         {"no object can be called so", withComponents(v1alpha1.ApplicationComponent{Kind: "Pod", Name: ".."}), field.ErrorList{field.Invalid(components.Index(0).Child("name"), "..", "")}},
		"too many":     {"a limit that is named", withComponents(manyComponents(1001)...), field.ErrorList{field.TooMany(components, 1001, 1000)}},
		"itself":       {"would wait for ever", func(a *v1alpha1.Application) { a.Spec.Dependencies = []string{"wordpress"} }, field.ErrorList{field.Invalid(deps.Index(0), "wordpress", "")}},
		"dependency":   {"no Application can be called so", func(a *v1alpha1.Application) { a.Spec.Dependencies = []string{"", "MySQL"} }, field.ErrorList{field.Required(deps.Index(0), ""), field.Invalid(deps.Index(1), "MySQL", "")}},
		"twice":        {"a set", func(a *v1alpha1.Application) { a.Spec.Dependencies = []string{"a", "a"} }, field.ErrorList{field.Duplicate(deps.Index(1), "a")}},
		"ownership":    {"unknown", func(a *v1alpha1.Application) { a.Spec.Ownership = "Steal" }, field.ErrorList{field.NotSupported(spec.Child("ownership"), v1alpha1.Ownership("Steal"), []string{})}},
		"no current":   {"healthy when", withHealthExpression(v1alpha1.HealthExpression{Kind: "Job"}), field.ErrorList{field.Required(expr.Child("current"), "")}},
		"data":         {"secrets stay secret", withHealthExpression(v1alpha1.HealthExpression{Kind: "Secret", Current: "has(data.password)"}), field.ErrorList{field.Invalid(expr.Child("current"), "has(data.password)", "")}},
		"no bool":      {"healthy is yes or no", withHealthExpression(v1alpha1.HealthExpression{Kind: "Job", Current: "1 + 1"}), field.ErrorList{field.Invalid(expr.Child("current"), "1 + 1", "")}},
	} {
		t.Run(name, func(t *testing.T) {
			assertErrors(t, tc.want, validation.ValidateApplication(application(tc.change), nil), tc.reason)
		})
	}
}

func manyComponents(n int) []v1alpha1.ApplicationComponent {
	components := make([]v1alpha1.ApplicationComponent, n)
	for i := range components {
		components[i] = v1alpha1.ApplicationComponent{Kind: "Pod", Name: strconv.Itoa(i)}
	}
	return components
}

// A32, A33, A34, P2
func TestValidateApplication_update(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(*v1alpha1.Application)
		want   field.ErrorList
	}{
		"everything else": {"may change", func(a *v1alpha1.Application) {
			a.Spec.Type, a.Spec.Version, a.Spec.Components, a.Spec.Dependencies = "Blog", "2", nil, nil
		}, nil},
		"selector":           {"components would be orphaned", withExpression("app", metav1.LabelSelectorOpExists), field.ErrorList{invalid(spec.Child("selector"))}},
		"one label more":     {"components would be orphaned", func(a *v1alpha1.Application) { a.Spec.Selector.MatchLabels["tier"] = "web" }, field.ErrorList{invalid(spec.Child("selector"))}},
		"selector dropped":   {"both rules are broken", func(a *v1alpha1.Application) { a.Spec.Selector = nil }, field.ErrorList{field.Required(spec.Child("selector"), ""), invalid(spec.Child("selector"))}},
		"create rules again": {"A32", func(a *v1alpha1.Application) { a.Spec.Type = "" }, field.ErrorList{field.Required(spec.Child("type"), "")}},
	} {
		t.Run(name, func(t *testing.T) {
			assertErrors(t, tc.want, validation.ValidateApplication(application(tc.change), application(nil)), tc.reason)
		})
	}
}

func TestApplicationWarnings(t *testing.T) {
	assert.Empty(t, validation.ApplicationWarnings(application(nil)))
	a := application(func(a *v1alpha1.Application) {
		a.Spec.Selector = &metav1.LabelSelector{}
		a.Spec.AboutURL, a.Spec.LicenseURL, a.Spec.DashboardURL = "https://wordpress.org", "GPL-2.0", "javascript:alert(1)"
	})
	assert.Len(t, validation.ApplicationWarnings(a), 3, "an empty selector and two links that are none")
}

func TestComponentKinds(t *testing.T) {
	a := application(func(a *v1alpha1.Application) {
		a.Spec.Components = append(a.Spec.Components, v1alpha1.ApplicationComponent{Kind: "Service", Name: "other"})
	})
	assert.Equal(t, []schema.GroupKind{{Kind: "Service"}, {Group: "apps", Kind: "StatefulSet"}}, validation.ComponentKinds(a))
}
