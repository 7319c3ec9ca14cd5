package validation_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
)

func installation(change func(*v1alpha1.ApplicationInstallation)) *v1alpha1.ApplicationInstallation {
	i := &v1alpha1.ApplicationInstallation{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "team-a"},
		Spec: v1alpha1.ApplicationInstallationSpec{
			ApplicationRef: v1alpha1.ApplicationReference{Name: "web", Version: "v1.0.0"},
			Namespace:      &v1alpha1.TargetNamespace{Name: "team-a"},
		},
	}
	if change != nil {
		change(i)
	}
	return i
}

func withValuesBlock(block string) func(*v1alpha1.ApplicationInstallation) {
	return func(i *v1alpha1.ApplicationInstallation) { i.Spec.ValuesBlock = block }
}

func withHelmOptions(o v1alpha1.HelmDeployOptions) func(*v1alpha1.ApplicationInstallation) {
	return func(i *v1alpha1.ApplicationInstallation) { i.Spec.DeployOptions = &v1alpha1.DeployOptions{Helm: &o} }
}

// K35-K39, C59
func TestValidateApplicationInstallation_accepts(t *testing.T) {
	for reason, change := range map[string]func(*v1alpha1.ApplicationInstallation){
		"the usual":                  nil,
		"defaults not filled in yet": func(i *v1alpha1.ApplicationInstallation) { i.Spec.Namespace = nil; i.Spec.ApplicationRef.Version = "" },
		"values": func(i *v1alpha1.ApplicationInstallation) {
			i.Spec.Values = &apiextensionsv1.JSON{Raw: []byte(`{"a": {"b": null}}`)}
		},
		"a block":                      withValuesBlock("# why\nreplicas: 2\n"),
		"a block of comments":          withValuesBlock("# replicas: 2\n"),
		"a block that starts with ---": withValuesBlock("---\nreplicas: 2\n"),
		"templates are data (C33)":     withValuesBlock("a: '{{ .Values.b }}'"),
		"options":                      withHelmOptions(v1alpha1.HelmDeployOptions{Wait: true, Atomic: true, HistoryLimit: 100, CRDs: v1alpha1.CRDSkip, DriftDetection: v1alpha1.DriftWarn}),
	} {
		t.Run(reason, func(t *testing.T) {
			assertErrors(t, nil, validation.ValidateApplicationInstallation(installation(change), nil), reason)
		})
	}
}

// K36-K39, C48, C55, C59
func TestValidateApplicationInstallation_refuses(t *testing.T) {
	ref, ns, block, from := spec.Child("applicationRef"), spec.Child("namespace"), spec.Child("valuesBlock"), spec.Child("valuesFrom")
	helm := spec.Child("deployOptions", "helm")
	long := strings.Repeat("a", 54)
	for name, tc := range map[string]struct {
		reason string
		change func(*v1alpha1.ApplicationInstallation)
		want   field.ErrorList
	}{
		"long name":     {"Helm releases are shorter", func(i *v1alpha1.ApplicationInstallation) { i.Name = long }, field.ErrorList{field.TooLong(field.NewPath("metadata", "name"), "", 0)}},
		"no definition": {"install what", func(i *v1alpha1.ApplicationInstallation) { i.Spec.ApplicationRef.Name = "" }, field.ErrorList{field.Required(ref.Child("name"), "")}},
		"definition":    {"no object can be called so", func(i *v1alpha1.ApplicationInstallation) { i.Spec.ApplicationRef.Name = "a/b" }, field.ErrorList{field.Invalid(ref.Child("name"), "a/b", "")}},
		"namespace":     {"names nothing", func(i *v1alpha1.ApplicationInstallation) { i.Spec.Namespace.Name = "" }, field.ErrorList{field.Required(ns.Child("name"), "")}},
		"labels":        {"no label value", func(i *v1alpha1.ApplicationInstallation) { i.Spec.Namespace.Labels = map[string]string{"a": "b c"} }, field.ErrorList{field.Invalid(ns.Child("labels"), "b c", "")}},
		"annotations":   {"no annotation key", func(i *v1alpha1.ApplicationInstallation) { i.Spec.Namespace.Annotations = map[string]string{"a b": ""} }, field.ErrorList{field.Invalid(ns.Child("annotations"), "a b", "")}},
		"both values": {"which one is meant", func(i *v1alpha1.ApplicationInstallation) {
			i.Spec.Values = &apiextensionsv1.JSON{Raw: []byte(`{}`)}
			i.Spec.ValuesBlock = "a: 1"
		}, field.ErrorList{field.Forbidden(block, "")}},
		"list":          {"values have names", func(i *v1alpha1.ApplicationInstallation) { i.Spec.Values = &apiextensionsv1.JSON{Raw: []byte(`[]`)} }, field.ErrorList{field.TypeInvalid(spec.Child("values"), field.OmitValueType{}, "")}},
		"null":          {"values have names", func(i *v1alpha1.ApplicationInstallation) { i.Spec.Values = &apiextensionsv1.JSON{Raw: []byte(`null`)} }, field.ErrorList{field.TypeInvalid(spec.Child("values"), field.OmitValueType{}, "")}},
		"no yaml":       {"cannot be read", withValuesBlock("a: [1"), field.ErrorList{invalid(block)}},
		"twice":         {"one of them would be lost", withValuesBlock("a: 1\na: 2"), field.ErrorList{invalid(block)}},
		"text":          {"values have names", withValuesBlock("just words"), field.ErrorList{field.TypeInvalid(block, field.OmitValueType{}, "")}},
		"two documents": {"the second would be lost", withValuesBlock("a: 1\n---\nb: 2"), field.ErrorList{invalid(block)}},
		"huge":          {"objects have limits", withValuesBlock(strings.Repeat("#", 512<<10+1)), field.ErrorList{field.TooLong(block, "", 0)}},
		"from nothing":  {"names nothing", func(i *v1alpha1.ApplicationInstallation) { i.Spec.ValuesFrom = []v1alpha1.ValuesReference{{}} }, field.ErrorList{field.Required(from.Index(0).Child("kind"), ""), field.Required(from.Index(0).Child("name"), "")}},
		"from a Pod": {"a Pod has no values", func(i *v1alpha1.ApplicationInstallation) {
			i.Spec.ValuesFrom = []v1alpha1.ValuesReference{{Kind: "Pod", Name: "a", Key: "/"}}
		}, field.ErrorList{field.NotSupported(from.Index(0).Child("kind"), "Pod", []string{}), field.Invalid(from.Index(0).Child("key"), "/", "")}},
		"from many": {"each is read at every reconciliation", func(i *v1alpha1.ApplicationInstallation) { i.Spec.ValuesFrom = manyReferences(21) }, field.ErrorList{field.TooMany(from, 21, 20)}},
		"account":   {"no ServiceAccount can be called so", func(i *v1alpha1.ApplicationInstallation) { i.Spec.ServiceAccountName = "a:b" }, field.ErrorList{field.Invalid(spec.Child("serviceAccountName"), "a:b", "")}},
		"interval":  {"would never rest", func(i *v1alpha1.ApplicationInstallation) { i.Spec.ReconciliationInterval.Duration = time.Millisecond }, field.ErrorList{field.Invalid(spec.Child("reconciliationInterval"), "1ms", "")}},
		"atomic":    {"nothing would be noticed", withHelmOptions(v1alpha1.HelmDeployOptions{Atomic: true}), field.ErrorList{field.Invalid(helm.Child("atomic"), true, "")}},
		"history":   {"each is a Secret", withHelmOptions(v1alpha1.HelmDeployOptions{HistoryLimit: 101}), field.ErrorList{field.Invalid(helm.Child("historyLimit"), int32(101), "")}},
		"enums": {"no such policies", withHelmOptions(v1alpha1.HelmDeployOptions{CRDs: "Never", DriftDetection: "Maybe"}), field.ErrorList{
			field.NotSupported(helm.Child("crds"), v1alpha1.CRDPolicy("Never"), []string{}),
			field.NotSupported(helm.Child("driftDetection"), v1alpha1.DriftDetection("Maybe"), []string{})}},
	} {
		t.Run(name, func(t *testing.T) {
			assertErrors(t, tc.want, validation.ValidateApplicationInstallation(installation(tc.change), nil), tc.reason)
		})
	}
}

func manyReferences(n int) []v1alpha1.ValuesReference {
	refs := make([]v1alpha1.ValuesReference, n)
	for i := range refs {
		refs[i] = v1alpha1.ValuesReference{Kind: "Secret", Name: "values"}
	}
	return refs
}

// K36, K50, C59
func TestValidateApplicationInstallation_update(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(*v1alpha1.ApplicationInstallation)
		want   field.ErrorList
	}{
		"version":           {"an upgrade", func(i *v1alpha1.ApplicationInstallation) { i.Spec.ApplicationRef.Version = "v2" }, nil},
		"labels":            {"of the namespace", func(i *v1alpha1.ApplicationInstallation) { i.Spec.Namespace.Labels = map[string]string{"a": "b"} }, nil},
		"definition":        {"another application under the same release", func(i *v1alpha1.ApplicationInstallation) { i.Spec.ApplicationRef.Name = "other" }, field.ErrorList{field.Invalid(spec.Child("applicationRef", "name"), "other", "")}},
		"namespace":         {"the release would be left behind", func(i *v1alpha1.ApplicationInstallation) { i.Spec.Namespace.Name = "other" }, field.ErrorList{field.Invalid(spec.Child("namespace"), "other", "")}},
		"namespace dropped": {"its default may be another one", func(i *v1alpha1.ApplicationInstallation) { i.Spec.Namespace = nil }, field.ErrorList{field.Invalid(spec.Child("namespace"), "team-a", "")}},
	} {
		t.Run(name, func(t *testing.T) {
			assertErrors(t, tc.want, validation.ValidateApplicationInstallation(installation(tc.change), installation(nil)), tc.reason)
		})
	}
}

// C46, C59: what was let in before its definition has no namespace but in its status.
func TestValidateApplicationInstallation_fillsInItsNamespace(t *testing.T) {
	name := spec.Child("namespace", "name")
	for reason, tc := range map[string]struct {
		resolved *v1alpha1.ResolvedApplication
		want     field.ErrorList
	}{
		"nothing was installed yet":                  {nil, nil},
		"it says what it was resolved to":            {&v1alpha1.ResolvedApplication{Namespace: "team-a"}, nil},
		"the release elsewhere would be left behind": {&v1alpha1.ResolvedApplication{Namespace: "apps"}, field.ErrorList{field.Invalid(name, "team-a", "")}},
	} {
		unset := installation(func(i *v1alpha1.ApplicationInstallation) {
			i.Spec.Namespace, i.Status.Application = nil, tc.resolved
		})
		assertErrors(t, tc.want, validation.ValidateApplicationInstallation(installation(nil), unset), reason)
		assert.Empty(t, validation.ValidateApplicationInstallation(unset, unset), "it may stay left out")
	}
}

// K35, K49
func TestValidateInstallationVersion(t *testing.T) {
	path := spec.Child("applicationRef", "version")
	named := func(version string) *v1alpha1.ApplicationInstallation {
		return installation(func(i *v1alpha1.ApplicationInstallation) { i.Spec.ApplicationRef.Version = version })
	}
	def := definition(nil)
	assert.Empty(t, validation.ValidateInstallationVersion(named("v1.1.0"), def))
	assert.Empty(t, validation.ValidateInstallationVersion(named("1.1.0"), def), "1.1.0 is v1.1.0")
	assertErrors(t, field.ErrorList{field.NotSupported(path, "1.1", []string{})},
		validation.ValidateInstallationVersion(named("1.1"), def), "other versions are names")
	assertErrors(t, field.ErrorList{field.Required(path, "")},
		validation.ValidateInstallationVersion(named(""), def), "the definition has no default")
}

// C28
func TestApplicationInstallationWarnings_deprecatedVersion(t *testing.T) {
	def := definition(func(d *v1alpha1.ApplicationDefinition) { d.Spec.Versions[0].Deprecated = true })
	obj := installation(nil)
	other := installation(func(i *v1alpha1.ApplicationInstallation) { i.Spec.ApplicationRef.Version = "v1.1.0" })
	assert.Len(t, validation.ApplicationInstallationWarnings(obj, nil, def), 1, "new use")
	assert.Len(t, validation.ApplicationInstallationWarnings(obj, other, def), 1, "moves to it")
	assert.Empty(t, validation.ApplicationInstallationWarnings(obj, obj, def), "used it before")
	assert.Empty(t, validation.ApplicationInstallationWarnings(other, nil, def), "not deprecated")
	assert.Empty(t, validation.ApplicationInstallationWarnings(obj, nil, nil), "nothing is known of it")
}

// A mistake in a block is found by its line, also where the block might have aliases.
func TestValidateApplicationInstallation_saysWhereABlockIsNoYAML(t *testing.T) {
	for _, block := range []string{"a: 1\nb: [1\n", "a: 1 # R&D, *\nb: [1\n", "a: &x 1\nb: [*x\n"} {
		errs := validation.ValidateApplicationInstallation(installation(withValuesBlock(block)), nil)
		require.Len(t, errs, 1, block)
		assert.Equal(t, "spec.valuesBlock", errs[0].Field, block)
		assert.Contains(t, errs[0].Detail, "line 2: ", block)
	}
}

// A few lines must not fill the memory of admission.
func TestValidateApplicationInstallation_limitsWhatAliasesStandFor(t *testing.T) {
	block := "a: &x " + strings.Repeat("y", 100_000) + "\nb: [" + strings.Repeat("*x,", 10_000) + "]"
	errs := validation.ValidateApplicationInstallation(installation(withValuesBlock(block)), nil)
	require.Len(t, errs, 1)
	assert.Equal(t, "spec.valuesBlock", errs[0].Field)
	assert.Contains(t, errs[0].Detail, "limit AliasBytes is 5242880")
}

// Values of a few hundred kilobytes take a hundred times that in the webhook.
func TestValidateApplicationInstallation_limitsValues(t *testing.T) {
	block := "a: [" + strings.Repeat("1,", 250_000) + "]"
	errs := validation.ValidateApplicationInstallation(installation(withValuesBlock(block)), nil)
	require.Len(t, errs, 1)
	assert.Equal(t, "spec.valuesBlock", errs[0].Field)
	assert.Contains(t, errs[0].Detail, "at most 200000 values")
	errs = validation.ValidateApplicationInstallation(installation(func(i *v1alpha1.ApplicationInstallation) {
		i.Spec.Values = &apiextensionsv1.JSON{Raw: []byte(`{"a":[` + strings.Repeat("{},", 150_000) + `{}]}`)}
	}), nil)
	require.Len(t, errs, 1)
	assert.Equal(t, "spec.values", errs[0].Field)
	assert.Contains(t, errs[0].Detail, "more than 200000 values")
}

func FuzzValidateApplicationInstallation_valuesBlock(f *testing.F) {
	for _, seed := range []string{"a: 1", "---\na: 1", "a: 1\n---\n", "- a", "&a [*a]", "\t", "{}", "null", "a: |\n  ---\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, block string) {
		if len(validation.ValidateApplicationInstallation(installation(withValuesBlock(block)), nil)) > 0 {
			return
		}
		var values map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(block), &values), "accepted, and no mapping: %q", block)
	})
}

// C60
func TestValidateInstallationAccount(t *testing.T) {
	def := &v1alpha1.ApplicationDefinition{}
	inst := installation(nil)
	assert.Empty(t, validation.ValidateInstallationAccount(inst, def, ""), "no account is requested")
	def.Spec.RequireServiceAccount = true
	assertErrors(t, field.ErrorList{field.Required(field.NewPath("spec", "serviceAccountName"), "")}, validation.ValidateInstallationAccount(inst, def, ""), "none is named")
	assert.Empty(t, validation.ValidateInstallationAccount(inst, def, "default"), "who runs Waybill names one")
	inst.Spec.ServiceAccountName = "deployer"
	assert.Empty(t, validation.ValidateInstallationAccount(inst, def, ""))
}

// K52
func TestValidateInstallationDeletionPolicy(t *testing.T) {
	forbidden := field.ErrorList{field.Forbidden(field.NewPath("spec", "deletionPolicy"), "")}
	for name, tc := range map[string]struct {
		reason   string
		forbid   bool
		enforced bool
		is, was  v1alpha1.InstallationDeletionPolicy
		want     field.ErrorList
		warned   string
	}{
		"allowed":       {reason: "the default", is: v1alpha1.InstallationOrphan},
		"uninstalled":   {reason: "nothing is left", forbid: true, is: v1alpha1.InstallationDelete, was: v1alpha1.InstallationOrphan},
		"left out":      {reason: "nothing is left", forbid: true},
		"forbidden":     {reason: "by the field", forbid: true, is: v1alpha1.InstallationOrphan, want: forbidden, warned: "(spec.forbidOrphan)"},
		"enforced":      {reason: "what is enforced is not for users to keep", enforced: true, is: v1alpha1.InstallationOrphan, want: forbidden, warned: "(spec.enforced)"},
		"as it was":     {reason: "nothing else could be changed any more", forbid: true, is: v1alpha1.InstallationOrphan, was: v1alpha1.InstallationOrphan, warned: "(spec.forbidOrphan)"},
		"not as it was": {reason: "a user sets it", forbid: true, is: v1alpha1.InstallationOrphan, was: v1alpha1.InstallationDelete, want: forbidden, warned: "(spec.forbidOrphan)"},
	} {
		t.Run(name, func(t *testing.T) {
			def, inst, old := &v1alpha1.ApplicationDefinition{}, installation(nil), installation(nil)
			def.Spec.ForbidOrphan, def.Spec.Enforced = tc.forbid, tc.enforced
			inst.Spec.DeletionPolicy, old.Spec.DeletionPolicy = tc.is, tc.was
			assertErrors(t, tc.want, validation.ValidateInstallationDeletionPolicy(inst, old, def), tc.reason)
			warning := validation.OrphanForbiddenWarning(inst, def)
			assert.Equal(t, tc.warned == "", warning == "", warning)
			assert.Contains(t, warning, tc.warned)
			if tc.was == "" {
				assertErrors(t, tc.want, validation.ValidateInstallationDeletionPolicy(inst, nil, def), tc.reason)
			}
		})
	}
}
