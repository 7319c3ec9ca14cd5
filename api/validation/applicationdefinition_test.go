package validation_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
)

func helmTemplate(url, chart, version string) *v1alpha1.ApplicationTemplate {
	return &v1alpha1.ApplicationTemplate{Source: v1alpha1.ApplicationSource{
		Helm: &v1alpha1.HelmSource{URL: url, ChartName: chart, ChartVersion: version},
	}}
}

func gitTemplate(remote string) *v1alpha1.ApplicationTemplate {
	return &v1alpha1.ApplicationTemplate{Source: v1alpha1.ApplicationSource{Git: &v1alpha1.GitSource{Remote: remote}}}
}

func definition(change func(*v1alpha1.ApplicationDefinition)) *v1alpha1.ApplicationDefinition {
	d := &v1alpha1.ApplicationDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: v1alpha1.ApplicationDefinitionSpec{
			Method: v1alpha1.MethodHelm,
			Versions: []v1alpha1.ApplicationVersion{
				{Version: "v1.0.0", Template: helmTemplate("https://charts.example.com", "web", "1.0.0")},
				{Version: "v1.1.0", Template: helmTemplate("oci://registry.example.com/charts", "web", "1.1.0")},
			},
		},
	}
	if change != nil {
		change(d)
	}
	return d
}

func withTemplate(t *v1alpha1.ApplicationTemplate) func(*v1alpha1.ApplicationDefinition) {
	return func(d *v1alpha1.ApplicationDefinition) { d.Spec.Versions[0].Template = t }
}

func withHelm(change func(*v1alpha1.HelmSource)) func(*v1alpha1.ApplicationDefinition) {
	return func(d *v1alpha1.ApplicationDefinition) { change(d.Spec.Versions[0].Template.Source.Helm) }
}

func withVersions(names ...string) func(*v1alpha1.ApplicationDefinition) {
	return func(d *v1alpha1.ApplicationDefinition) {
		d.Spec.Versions = nil
		for _, name := range names {
			d.Spec.Versions = append(d.Spec.Versions, v1alpha1.ApplicationVersion{
				Version: name, Template: helmTemplate("https://charts.example.com", "web", "1.0.0")})
		}
	}
}

// K11, K12, K13, K14, K15, K16, K17, K18, K19, C25, C45
func TestValidateApplicationDefinition_accepts(t *testing.T) {
	for reason, change := range map[string]func(*v1alpha1.ApplicationDefinition){
		"a helm repository and a registry": nil,
		"a chart in git":                   withTemplate(gitTemplate("git@git.example.com:charts")),
		"a kustomization in git": func(d *v1alpha1.ApplicationDefinition) {
			d.Spec.Method = v1alpha1.MethodKustomize
			d.Spec.Versions = []v1alpha1.ApplicationVersion{{Version: "main", Template: gitTemplate("https://git.example.com/x")}}
		},
		"a copy without templates": func(d *v1alpha1.ApplicationDefinition) {
			d.Annotations = map[string]string{v1alpha1.CopyOfAnnotation: "hub"}
			d.Spec.Versions[0].Template, d.Spec.Versions[1].Template = nil, nil
		},
		"a version of words":       withVersions("stable", "v0.0.0-dev"),
		"a registry without TLS":   withTemplate(&v1alpha1.ApplicationTemplate{Source: v1alpha1.ApplicationSource{Helm: &v1alpha1.HelmSource{URL: "oci://r", ChartName: "a", ChartVersion: "1.0.0", PlainHTTP: true}}}),
		"a default that is there":  func(d *v1alpha1.ApplicationDefinition) { d.Spec.DefaultVersion = "v1.1.0" },
		"a chart version with a v": withHelm(func(h *v1alpha1.HelmSource) { h.ChartVersion = "v1.2.3-rc.1+build" }),
		"a logo": func(d *v1alpha1.ApplicationDefinition) {
			d.Spec.Logo = &v1alpha1.Logo{Format: "svg+xml", Data: []byte("<svg/>")}
		},
	} {
		t.Run(reason, func(t *testing.T) {
			assertErrors(t, nil, validation.ValidateApplicationDefinition(definition(change), nil), reason)
		})
	}
}

// K15, K19, K27, C27, C45, C48, C59, P5
func TestValidateApplicationDefinition_refuses(t *testing.T) {
	versions := spec.Child("versions")
	template := versions.Index(0).Child("template")
	helm, git := template.Child("source", "helm"), template.Child("source", "git")
	for name, tc := range map[string]struct {
		reason string
		change func(*v1alpha1.ApplicationDefinition)
		want   field.ErrorList
	}{
		"no versions": {"nothing is offered", withVersions(), field.ErrorList{field.Required(versions, "")}},
		"no name":     {"nobody can ask for it", withVersions(""), field.ErrorList{field.Required(versions.Index(0).Child("version"), "")}},
		"same":        {"which one is meant", withVersions("1", "1"), field.ErrorList{field.Duplicate(versions.Index(1).Child("version"), "1")}},
		"equal":       {"v1.0.0 is 1.0.0", withVersions("v1.0.0", "2.0.0", "1.0.0"), field.ErrorList{field.Duplicate(versions.Index(2).Child("version"), "1.0.0")}},
		"equal build": {"build metadata does not count", withVersions("1.0.0+a", "1.0.0+b"), field.ErrorList{field.Duplicate(versions.Index(1).Child("version"), "1.0.0+b")}},
		"comma":       {"force-remove lists versions", withVersions("1,2"), field.ErrorList{field.Invalid(versions.Index(0).Child("version"), "1,2", "")}},
		"star":        {"force-remove means all by it", withVersions("*"), field.ErrorList{field.Invalid(versions.Index(0).Child("version"), "*", "")}},
		"no template": {"nothing to install", withTemplate(nil), field.ErrorList{field.Required(template, "")}},
		"no source":   {"nothing to install", withTemplate(&v1alpha1.ApplicationTemplate{}), field.ErrorList{invalid(template.Child("source"))}},
		"two sources": {"which one is meant", func(d *v1alpha1.ApplicationDefinition) {
			d.Spec.Versions[0].Template.Source.Git = &v1alpha1.GitSource{Remote: "https://git.example.com/x"}
		}, field.ErrorList{invalid(template.Child("source"))}},
		"helm, not git": {"a chart is no kustomization", func(d *v1alpha1.ApplicationDefinition) {
			d.Spec.Method = v1alpha1.MethodKustomize
			d.Spec.Versions = d.Spec.Versions[:1]
		}, field.ErrorList{invalid(helm)}},
		"method": {"no such method", func(d *v1alpha1.ApplicationDefinition) {
			d.Spec.Method = "jsonnet"
			withTemplate(gitTemplate("https://g/x"))(d)
			d.Spec.Versions = d.Spec.Versions[:1]
		}, field.ErrorList{field.NotSupported(spec.Child("method"), v1alpha1.Method("jsonnet"), []string{})}},
		"url":     {"no helm repository", withHelm(func(h *v1alpha1.HelmSource) { h.URL = "ssh://x" }), field.ErrorList{field.Invalid(helm.Child("url"), "ssh://x", "")}},
		"chart":   {"a chart name is one word", withHelm(func(h *v1alpha1.HelmSource) { h.ChartName = "../web" }), field.ErrorList{field.Invalid(helm.Child("chartName"), "../web", "")}},
		"range":   {"what is installed is what was reviewed", withHelm(func(h *v1alpha1.HelmSource) { h.ChartVersion = "^1.0.0" }), field.ErrorList{field.Invalid(helm.Child("chartVersion"), "^1.0.0", "")}},
		"partial": {"Helm takes 1.2 for a range", withHelm(func(h *v1alpha1.HelmSource) { h.ChartVersion = "1.2" }), field.ErrorList{field.Invalid(helm.Child("chartVersion"), "1.2", "")}},
		"plain":   {"https has TLS", withHelm(func(h *v1alpha1.HelmSource) { h.PlainHTTP = true }), field.ErrorList{field.Invalid(helm.Child("plainHTTP"), true, "")}},
		"in clear": {"credentials would be sent in clear", withHelm(func(h *v1alpha1.HelmSource) {
			h.URL = "http://x"
			h.Credentials = &v1alpha1.SourceCredentials{SecretRef: v1alpha1.LocalReference{Name: "a"}}
		}), field.ErrorList{field.Invalid(helm.Child("url"), "http://x", "")}},
		"registry in clear": {"credentials would be sent in clear", withHelm(func(h *v1alpha1.HelmSource) {
			h.URL, h.PlainHTTP = "oci://x", true
			h.Credentials = &v1alpha1.SourceCredentials{SecretRef: v1alpha1.LocalReference{Name: "a"}}
		}), field.ErrorList{field.Invalid(helm.Child("plainHTTP"), true, "")}},
		"credentials": {"names nothing", withHelm(func(h *v1alpha1.HelmSource) { h.Credentials = &v1alpha1.SourceCredentials{} }), field.ErrorList{field.Required(helm.Child("credentials", "secretRef", "name"), "")}},
		"remote":      {"nothing to pull from", withTemplate(gitTemplate("")), field.ErrorList{field.Required(git.Child("remote"), "")}},
		"remote in clear": {"credentials would be sent in clear", func(d *v1alpha1.ApplicationDefinition) {
			withTemplate(gitTemplate("http://g/x"))(d)
			d.Spec.Versions[0].Template.Source.Git.Credentials = &v1alpha1.SourceCredentials{SecretRef: v1alpha1.LocalReference{Name: "a"}}
		}, field.ErrorList{field.Invalid(git.Child("remote"), "http://g/x", "")}},
		"git path": {"leaves the repository", func(d *v1alpha1.ApplicationDefinition) {
			withTemplate(gitTemplate("https://g/x"))(d)
			d.Spec.Versions[0].Template.Source.Git.Path = "../x"
		}, field.ErrorList{field.Invalid(git.Child("path"), "../x", "")}},
		"values": {"values have names", func(d *v1alpha1.ApplicationDefinition) {
			d.Spec.DefaultValues = &apiextensionsv1.JSON{Raw: []byte(`[1]`)}
		}, field.ErrorList{field.TypeInvalid(spec.Child("defaultValues"), field.OmitValueType{}, "")}},
		"default": {"nobody could install it", func(d *v1alpha1.ApplicationDefinition) { d.Spec.DefaultVersion = "1.0.0" }, field.ErrorList{field.Invalid(spec.Child("defaultVersion"), "1.0.0", "")}},
		"link":    {"a link that runs a script", func(d *v1alpha1.ApplicationDefinition) { d.Spec.DocumentationURL = "javascript:alert(1)" }, field.ErrorList{field.Invalid(spec.Child("documentationURL"), "javascript:alert(1)", "")}},
		"logo": {"no browser shows it", func(d *v1alpha1.ApplicationDefinition) {
			d.Spec.Logo = &v1alpha1.Logo{Format: "png", Data: []byte("<svg/>")}
		}, field.ErrorList{invalid(spec.Child("logo", "data"))}},
		"large logo": {"definitions are copied to every cluster", func(d *v1alpha1.ApplicationDefinition) {
			d.Spec.Logo = &v1alpha1.Logo{Format: "png", Data: bytes.Repeat([]byte("x"), 64<<10+1)}
		}, field.ErrorList{field.TooLong(spec.Child("logo", "data"), "", 0)}},
		"account": {"no ServiceAccount can be called so", func(d *v1alpha1.ApplicationDefinition) { d.Spec.ServiceAccountName = "A" }, field.ErrorList{field.Invalid(spec.Child("serviceAccountName"), "A", "")}},
		"selector": {"no such operator", func(d *v1alpha1.ApplicationDefinition) {
			d.Spec.ClusterSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
		}, field.ErrorList{field.Invalid(spec.Child("clusterSelector", "matchExpressions").Index(0).Child("operator"), metav1.LabelSelectorOperator("Near"), "")}},
	} {
		t.Run(name, func(t *testing.T) {
			assertErrors(t, tc.want, validation.ValidateApplicationDefinition(definition(tc.change), nil), tc.reason)
		})
	}
}

// K13
func TestValidateApplicationDefinition_methodIsImmutable(t *testing.T) {
	old := definition(withTemplate(gitTemplate("https://git.example.com/x")))
	old.Spec.Versions = old.Spec.Versions[:1]
	obj := old.DeepCopy()
	obj.Spec.Method = v1alpha1.MethodKustomize
	assertErrors(t, field.ErrorList{field.Invalid(spec.Child("method"), v1alpha1.MethodKustomize, "")},
		validation.ValidateApplicationDefinition(obj, old), "installations have releases of the old method")
	obj.Spec.Method = ""
	assert.Empty(t, validation.ValidateApplicationDefinition(obj, old), "the default is what it was")
}

func TestApplicationDefinitionWarnings(t *testing.T) {
	assert.Empty(t, validation.ApplicationDefinitionWarnings(definition(nil)))
	d := definition(withHelm(func(h *v1alpha1.HelmSource) { h.InsecureSkipTLS = true; h.URL = "http://x" }))
	d.Spec.DefaultVersion, d.Spec.Versions[0].Deprecated = "v1.0.0", true
	assert.Len(t, validation.ApplicationDefinitionWarnings(d), 3, "no TLS, no trust, and a default to avoid")
}

// C28
func TestRemovedVersions(t *testing.T) {
	old := definition(withVersions("2", "1", "3"))
	assert.Equal(t, []string{"1", "3"}, validation.RemovedVersions(definition(withVersions("2")), old))
	assert.Equal(t, []string{"1", "2", "3"}, validation.RemovedVersions(nil, old), "all of a deleted definition")
	assert.Empty(t, validation.RemovedVersions(old, old))
}

// C28, C47
func TestForceRemoved(t *testing.T) {
	for annotation, want := range map[string]bool{"": false, "1": true, "2": false, "2, 1": true, "*": true, "11": false} {
		d := definition(func(d *v1alpha1.ApplicationDefinition) {
			d.Annotations = map[string]string{v1alpha1.ForceRemoveAnnotation: annotation}
		})
		assert.Equal(t, want, validation.ForceRemoved(d, "1"), "annotation %q", annotation)
	}
	assert.False(t, validation.ForceRemoved(definition(nil), "1"), "no annotation")
	assert.False(t, validation.ForceRemoved(definition(nil), ""), "no annotation, and no version")
}
