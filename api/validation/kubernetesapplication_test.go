package validation_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
)

var templates = spec.Child("resourceTemplates")

// template is a resource template, called web, of a manifest.
func template(t *testing.T, manifest string) v1alpha1.ResourceTemplate {
	t.Helper()
	made := v1alpha1.ResourceTemplate{Metadata: v1alpha1.ResourceTemplateMetadata{Name: "web"}}
	require.NoError(t, json.Unmarshal([]byte(manifest), &made.Spec.Template))
	return made
}

const configMap = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web","namespace":"shop"},"data":{"a":"b"}}`

func newKubernetesApplication(made ...v1alpha1.ResourceTemplate) *v1alpha1.KubernetesApplication {
	return &v1alpha1.KubernetesApplication{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "team"},
		Spec: v1alpha1.KubernetesApplicationSpec{
			ClusterSelector: &metav1.LabelSelector{}, ResourceTemplates: made,
		},
	}
}

// W17, W59, C58: one template that is wrong is enough.
func TestValidateKubernetesApplication_templates(t *testing.T) {
	at := templates.Index(1).Child("spec", "template")
	metadata := at.Child("metadata")
	for name, tc := range map[string]struct {
		reason   string
		manifest string
		want     field.ErrorList
	}{
		"any kind": {"also one that nobody here has heard of", `{"apiVersion":"never.example.com/v7","kind":"Heard","metadata":{"name":"a:b"},"free":{"form":1}}`, nil},
		"namespaceless": {"W27: goes to default",
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web"}}`, nil},
		"never created": {"as printed by a client that has not written it",
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web","creationTimestamp":null}}`, nil},
		"apiVersion": {"group and version", `{"apiVersion":"a/b/c","kind":"ConfigMap","metadata":{"name":"web"}}`,
			field.ErrorList{field.Invalid(at.Child("apiVersion"), "a/b/c", "")}},
		"no apiVersion": {"W17", `{"kind":"ConfigMap","metadata":{"name":"web"}}`,
			field.ErrorList{field.Required(at.Child("apiVersion"), "")}},
		"kind": {"no kind is called that", `{"apiVersion":"v1","kind":"config-map","metadata":{"name":"web"}}`,
			field.ErrorList{field.Invalid(at.Child("kind"), "config-map", "")}},
		"generateName": {"it could not be found again", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"web-"}}`,
			field.ErrorList{field.Required(metadata.Child("name"), "")}},
		"name": {"a path", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a/b"}}`,
			field.ErrorList{field.Invalid(metadata.Child("name"), "a/b", "")}},
		"namespace": {"no label", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web","namespace":"A"}}`,
			field.ErrorList{field.Invalid(metadata.Child("namespace"), "A", "")}},
		"labels": {"no strings", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web","labels":{"a":1}}}`,
			field.ErrorList{invalid(metadata.Child("labels"))}},
		"label": {"no value", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web","labels":{"a":"/"}}}`,
			field.ErrorList{field.Invalid(metadata.Child("labels"), "/", "")}},
		"uid": {"exported from somewhere", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web","uid":"1"}}`,
			field.ErrorList{field.Forbidden(metadata.Child("uid"), "")}},
		"list": {"W16: one object", `{"apiVersion":"v1","kind":"ConfigMapList","metadata":{"name":"web"},"items":[]}`,
			field.ErrorList{field.Forbidden(at.Child("items"), "")}},
	} {
		t.Run(name, func(t *testing.T) {
			good := template(t, configMap)
			good.Metadata.Name = "good"
			obj := newKubernetesApplication(good, template(t, tc.manifest))
			assertErrors(t, tc.want, validation.ValidateKubernetesApplication(obj, nil), tc.reason)
		})
	}
}

// W7, W8, W18, W35, C48, C58
func TestValidateKubernetesApplication(t *testing.T) {
	first := templates.Index(0)
	secrets := first.Child("spec", "secrets")
	long := strings.Repeat("s", 190)
	for name, tc := range map[string]struct {
		reason string
		change func(*v1alpha1.KubernetesApplication)
		want   field.ErrorList
	}{
		"valid": {"as it is", func(*v1alpha1.KubernetesApplication) {}, nil},
		"selector": {"where to is said", func(a *v1alpha1.KubernetesApplication) { a.Spec.ClusterSelector = nil },
			field.ErrorList{field.Required(spec.Child("clusterSelector"), "")}},
		"expression": {"In needs values", func(a *v1alpha1.KubernetesApplication) {
			a.Spec.ClusterSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "In"}}
		}, field.ErrorList{field.Required(spec.Child("clusterSelector", "matchExpressions").Index(0).Child("values"), "")}},
		"cluster": {"no name", func(a *v1alpha1.KubernetesApplication) { a.Spec.ClusterName = "A" },
			field.ErrorList{field.Invalid(spec.Child("clusterName"), "A", "")}},
		"empty": {"W8", func(a *v1alpha1.KubernetesApplication) { a.Spec.ResourceTemplates = nil },
			field.ErrorList{field.Required(templates, "")}},
		"twice": {"W46 would be with itself", func(a *v1alpha1.KubernetesApplication) {
			a.Spec.ResourceTemplates = append(a.Spec.ResourceTemplates, a.Spec.ResourceTemplates[0])
		}, field.ErrorList{field.Duplicate(templates.Index(1), "web")}},
		"name": {"part of the names of Secrets", func(a *v1alpha1.KubernetesApplication) { a.Spec.ResourceTemplates[0].Metadata.Name = "a.b" },
			field.ErrorList{field.Invalid(first.Child("metadata", "name"), "a.b", "")}},
		"labels": {"W9", func(a *v1alpha1.KubernetesApplication) {
			a.Spec.ResourceTemplates[0].Metadata.Labels = map[string]string{"a": "/"}
		}, field.ErrorList{field.Invalid(first.Child("metadata", "labels"), "/", "")}},
		"secrets": {"each once", func(a *v1alpha1.KubernetesApplication) {
			a.Spec.ResourceTemplates[0].Spec.Secrets = []v1alpha1.ResourceSecretReference{{Name: "sql"}, {Name: "sql"}, {}}
		}, field.ErrorList{field.Duplicate(secrets.Index(1), "sql"), field.Required(secrets.Index(2).Child("name"), "")}},
		"long secret": {"its copy has a prefix", func(a *v1alpha1.KubernetesApplication) {
			a.Spec.ResourceTemplates[0].Spec.Secrets = []v1alpha1.ResourceSecretReference{{Name: long}}
		}, field.ErrorList{field.TooLong(secrets.Index(0).Child("name"), long, 189)}},
		"long name": {"C48", func(a *v1alpha1.KubernetesApplication) { a.Name = strings.Repeat("a", 64) },
			field.ErrorList{field.TooLong(field.NewPath("metadata", "name"), "", 63)}},
	} {
		t.Run(name, func(t *testing.T) {
			obj := newKubernetesApplication(template(t, configMap))
			tc.change(obj)
			assertErrors(t, tc.want, validation.ValidateKubernetesApplication(obj, nil), tc.reason)
		})
	}
}

// C58, C12: kinds of Kubernetes itself are known to have no namespace; of others only the user
// cluster knows.
func TestValidateKubernetesApplication_secretsNeedANamespace(t *testing.T) {
	for manifest, refused := range map[string]bool{
		`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"web"}}`:                                true,
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"web"}}`:    true,
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"}}`:                          false,
		`{"apiVersion":"serving.example.com/v1","kind":"Namespace","metadata":{"name":"not-kubernetes"}}`: false,
	} {
		made := template(t, manifest)
		made.Spec.Secrets = []v1alpha1.ResourceSecretReference{{Name: "sql"}}
		var want field.ErrorList
		if refused {
			want = field.ErrorList{field.Forbidden(templates.Index(0).Child("spec", "secrets"), "")}
		}
		assertErrors(t, want, validation.ValidateKubernetesApplication(newKubernetesApplication(made), nil), manifest)
	}
}

// W55-W58, W60, C14, C40
func TestValidateKubernetesApplication_update(t *testing.T) {
	identity := templates.Index(0).Child("spec", "template")
	for name, tc := range map[string]struct {
		reason string
		change func(*testing.T, *v1alpha1.KubernetesApplication)
		want   field.ErrorList
	}{
		"content": {"W58", func(t *testing.T, a *v1alpha1.KubernetesApplication) {
			a.Spec.ResourceTemplates[0] = template(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web","namespace":"shop","labels":{"new":"label"}},"data":{"new":"data"}}`)
		}, nil},
		"selector": {"W55", func(_ *testing.T, a *v1alpha1.KubernetesApplication) {
			a.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
		}, field.ErrorList{invalid(spec.Child("clusterSelector"))}},
		"moved": {"W60", func(_ *testing.T, a *v1alpha1.KubernetesApplication) { a.Spec.ClusterName = "oslo" },
			field.ErrorList{field.Invalid(spec.Child("clusterName"), "oslo", "")}},
		"identity": {"W57", func(t *testing.T, a *v1alpha1.KubernetesApplication) {
			a.Spec.ResourceTemplates[0] = template(t, `{"apiVersion":"v2","kind":"Secret","metadata":{"name":"other"}}`)
		}, field.ErrorList{
			field.Invalid(identity.Child("apiVersion"), "v2", ""), field.Invalid(identity.Child("kind"), "Secret", ""),
			field.Invalid(identity.Child("metadata", "name"), "other", ""), field.Invalid(identity.Child("metadata", "namespace"), "", ""),
		}},
		"another name": {"a new resource, and the old one goes", func(t *testing.T, a *v1alpha1.KubernetesApplication) {
			a.Spec.ResourceTemplates[0] = template(t, `{"apiVersion":"v2","kind":"Secret","metadata":{"name":"other"}}`)
			a.Spec.ResourceTemplates[0].Metadata.Name = "other"
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			old := newKubernetesApplication(template(t, configMap))
			old.Spec.ClusterName = "berlin"
			obj := old.DeepCopy()
			tc.change(t, obj)
			assertErrors(t, tc.want, validation.ValidateKubernetesApplication(obj, old), tc.reason)
		})
	}
}

// W57, C14: the message says which of many resource templates it is about.
func TestValidateKubernetesApplication_namesTheTemplate(t *testing.T) {
	old := newKubernetesApplication(template(t, configMap))
	obj := old.DeepCopy()
	obj.Spec.ResourceTemplates[0].Spec.Template.Kind = "Secret"
	errs := validation.ValidateKubernetesApplication(obj, old)
	require.Len(t, errs, 1)
	assert.EqualError(t, errs[0], `spec.resourceTemplates[0].spec.template.kind: Invalid value: "Secret": resource template `+
		obj.Spec.ResourceTemplates[0].Metadata.Name+": is immutable: a change would orphan the object; give the resource template another name")
}

// C40: set once; a client that does not name it does not take it away.
func TestDefaultKubernetesApplication(t *testing.T) {
	old := newKubernetesApplication()
	old.Spec.ClusterName = "berlin"
	for name, want := range map[string]string{"": "berlin", "oslo": "oslo"} {
		obj := newKubernetesApplication()
		obj.Spec.ClusterName = name
		validation.DefaultKubernetesApplication(obj, old)
		validation.DefaultKubernetesApplication(obj, old)
		assert.Equal(t, want, obj.Spec.ClusterName)
	}
	created := newKubernetesApplication()
	validation.DefaultKubernetesApplication(created, nil)
	assert.Empty(t, created.Spec.ClusterName)
}

// W10, W51
func TestKubernetesApplicationWarnings(t *testing.T) {
	one, two := template(t, configMap), template(t, configMap)
	one.Metadata.Namespace, two.Metadata.Namespace = "team", "elsewhere"
	two.Metadata.Name = "two"
	assert.Empty(t, validation.KubernetesApplicationWarnings(newKubernetesApplication(one), nil))
	warnings := validation.KubernetesApplicationWarnings(newKubernetesApplication(one, two), nil)
	require.Len(t, warnings, 2)
	assert.Contains(t, warnings[0], "spec.resourceTemplates[1].metadata.namespace is ignored")
	assert.Contains(t, warnings[1], "spec.resourceTemplates[1] is of the same object as the resource template web")
}

// W40: a resource template that gets another name is one that is removed and one that is added,
// which a user who only wanted a nicer name does not expect.
func TestKubernetesApplicationWarnings_renamed(t *testing.T) {
	was, is := template(t, configMap), template(t, configMap)
	is.Metadata.Name = "frontend"
	other := template(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"other","namespace":"shop"}}`)
	other.Metadata.Name = "other"
	warnings := validation.KubernetesApplicationWarnings(newKubernetesApplication(other, is), newKubernetesApplication(was, other))
	require.Len(t, warnings, 1)
	assert.Contains(t, warnings[0], "spec.resourceTemplates[1] names the object of the removed resource template web: renaming a resource template deletes its object")

	assert.Empty(t, validation.KubernetesApplicationWarnings(newKubernetesApplication(was, other), newKubernetesApplication(other, was)), "they moved")
	assert.Empty(t, validation.KubernetesApplicationWarnings(newKubernetesApplication(is), newKubernetesApplication(other)), "another object")
	assert.Empty(t, validation.KubernetesApplicationWarnings(newKubernetesApplication(is), nil))
}

// W33: copies of Secrets whose names are the same.
func TestKubernetesApplicationWarnings_copies(t *testing.T) {
	named := func(name, manifest string, secrets ...string) v1alpha1.ResourceTemplate {
		made := template(t, manifest)
		made.Metadata.Name = name
		for _, secret := range secrets {
			made.Spec.Secrets = append(made.Spec.Secrets, v1alpha1.ResourceSecretReference{Name: secret})
		}
		return made
	}
	const (
		here  = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web","namespace":"default"}}`
		also  = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web2"}}`
		there = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web3","namespace":"there"}}`
		same  = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a-b-c"}}`
	)
	for name, tc := range map[string]struct {
		reason    string
		templates []v1alpha1.ResourceTemplate
		want      []string
	}{
		"two copies": {"a-b with c is a with b-c", []v1alpha1.ResourceTemplate{named("a-b", here, "c"), named("a", also, "b-c")}, []string{
			"spec.resourceTemplates[1].spec.secrets[0]: the copy is Secret default/a-b-c, and so is the copy of c of the resource template a-b: give one of the resource templates another name",
		}},
		"a templated Secret": {"wherever it stands", []v1alpha1.ResourceTemplate{named("a-b", here, "c"), named("other", same)}, []string{
			"spec.resourceTemplates[0].spec.secrets[0]: the copy is Secret default/a-b-c, and so is the object of the resource template other: give one of the resource templates another name",
		}},
		"other namespaces": {"they are two", []v1alpha1.ResourceTemplate{named("a-b", here, "c"), named("a", there, "b-c")}, nil},
		"other names":      {"they are two", []v1alpha1.ResourceTemplate{named("a", here, "c"), named("b", also, "c")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, validation.KubernetesApplicationWarnings(newKubernetesApplication(tc.templates...), nil), tc.reason)
		})
	}
}

// sized is a ConfigMap whose manifest has that many bytes, as JSON.
func sized(t *testing.T, name string, size int) v1alpha1.ResourceTemplate {
	t.Helper()
	manifest := func(fill int) string {
		return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `"},"data":{"a":"` + strings.Repeat("x", fill) + `"}}`
	}
	made := template(t, manifest(size-len(manifest(0))))
	made.Metadata.Name = name
	return made
}

// C58: what leaves no room for what is written beside the spec is refused before it is stored.
func TestValidate_leavesRoom(t *testing.T) {
	const limit = 1 << 20
	t.Run("KubernetesApplication", func(t *testing.T) {
		text, err := json.Marshal([]v1alpha1.ResourceTemplate{sized(t, "one", 1000), sized(t, "two", 1000)})
		require.NoError(t, err)
		of := func(over int) *v1alpha1.KubernetesApplication {
			return newKubernetesApplication(sized(t, "one", 1000), sized(t, "two", 1000+limit-len(text)+over))
		}
		large := field.ErrorList{field.TooLong(templates, "", limit)}
		assertErrors(t, nil, validation.ValidateKubernetesApplication(of(0), nil), "just small enough")
		assertErrors(t, large, validation.ValidateKubernetesApplication(of(1), nil), "too large by a byte")
		assertErrors(t, large, validation.ValidateKubernetesApplication(of(1), of(0)), "an edit")
		scheduled := of(1)
		scheduled.Spec.ClusterName = "berlin"
		assertErrors(t, nil, validation.ValidateKubernetesApplication(scheduled, of(1)), "one that is stored already can be worked on, and deleted")
	})
	t.Run("KubernetesApplicationResource", func(t *testing.T) {
		of := func(size int) *v1alpha1.KubernetesApplicationResource {
			return &v1alpha1.KubernetesApplicationResource{
				ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "team"},
				Spec:       v1alpha1.KubernetesApplicationResourceSpec{Template: sized(t, "web", size).Spec.Template},
			}
		}
		large := field.ErrorList{field.TooLong(spec.Child("template"), "", limit)}
		assertErrors(t, nil, validation.ValidateKubernetesApplicationResource(of(limit), nil), "just small enough")
		assertErrors(t, large, validation.ValidateKubernetesApplicationResource(of(limit+1), nil), "too large by a byte")
		assertErrors(t, large, validation.ValidateKubernetesApplicationResource(of(limit+1), of(limit)), "an edit")
		assertErrors(t, nil, validation.ValidateKubernetesApplicationResource(of(limit+1), of(limit+1)), "one that is stored already")
	})
}

// W17, W41, W56, C58
func TestValidateKubernetesApplicationResource(t *testing.T) {
	path := spec.Child("template")
	for name, tc := range map[string]struct {
		reason string
		change func(*v1alpha1.KubernetesApplicationResource)
		want   field.ErrorList
	}{
		"content": {"W58", func(r *v1alpha1.KubernetesApplicationResource) {
			r.Spec.Template = template(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web","namespace":"shop"}}`).Spec.Template
		}, nil},
		"identity": {"W56", func(r *v1alpha1.KubernetesApplicationResource) {
			r.Spec.Template = template(t, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"web","namespace":"shop"}}`).Spec.Template
		}, field.ErrorList{field.Invalid(path.Child("kind"), "Secret", "")}},
		"moved": {"W60", func(r *v1alpha1.KubernetesApplicationResource) { r.Spec.ClusterName = "" },
			field.ErrorList{field.Invalid(spec.Child("clusterName"), "", "")}},
		"nothing": {"W17", func(r *v1alpha1.KubernetesApplicationResource) { r.Spec.Template = v1alpha1.ObjectTemplate{} },
			field.ErrorList{
				field.Required(path.Child("apiVersion"), ""), field.Required(path.Child("metadata", "name"), ""),
				field.Invalid(path.Child("apiVersion"), "", ""), field.Invalid(path.Child("kind"), "", ""),
				field.Invalid(path.Child("metadata", "name"), "", ""), field.Invalid(path.Child("metadata", "namespace"), "", ""),
			}},
	} {
		t.Run(name, func(t *testing.T) {
			old := &v1alpha1.KubernetesApplicationResource{
				ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "team"},
				Spec: v1alpha1.KubernetesApplicationResourceSpec{
					ClusterName: "berlin", Template: template(t, configMap).Spec.Template,
				},
			}
			assertErrors(t, nil, validation.ValidateKubernetesApplicationResource(old, nil), "valid before")
			obj := old.DeepCopy()
			tc.change(obj)
			assertErrors(t, tc.want, validation.ValidateKubernetesApplicationResource(obj, old), tc.reason)
		})
	}
}
