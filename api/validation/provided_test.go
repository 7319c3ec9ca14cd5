package validation_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
)

// K2: clusters are given defaultVersion, or else the newest version that people would choose.
func TestProvidedVersion(t *testing.T) {
	for name, tc := range map[string]struct {
		versions   string // a deprecated one ends with !
		byDefault  string
		is, reason string
	}{
		"defaultVersion":  {"1.0.0 2.0.0", "1.0.0", "1.0.0", "somebody has said so"},
		"newest":          {"1.9.0 1.10.0 1.2.0", "", "1.10.0", "by number, not by letter"},
		"a leading v":     {"v1.0.0 1.1.0", "", "1.1.0", "it does not count"},
		"deprecated":      {"1.0.0 2.0.0!", "", "1.0.0", "nobody should begin to use it"},
		"all deprecated":  {"1.0.0! 2.0.0!", "", "", "somebody has to choose"},
		"prerelease":      {"1.0.0 2.0.0-rc.1", "", "1.0.0", "it is not released"},
		"prerelease only": {"2.0.0-rc.1 2.0.0-rc.2", "", "2.0.0-rc.2", "there is nothing else"},
		"other names":     {"latest 0.1.0", "", "0.1.0", "it can be compared with nothing"},
		"other only":      {"stable edge", "", "stable", "the first of the spec"},
	} {
		t.Run(name, func(t *testing.T) {
			d := &v1alpha1.ApplicationDefinition{}
			d.Spec.DefaultVersion = tc.byDefault
			for _, v := range strings.Fields(tc.versions) {
				bare, deprecated := strings.CutSuffix(v, "!")
				d.Spec.Versions = append(d.Spec.Versions, v1alpha1.ApplicationVersion{Version: bare, Deprecated: deprecated})
			}
			assert.Equal(t, tc.is, validation.ProvidedVersion(d), tc.reason)
		})
	}
}

// K2: a definition that cannot be installed without a choice of a user is refused when it says that it is to be.
func TestValidateApplicationDefinition_provided(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1alpha1.ApplicationDefinition)
		fields []string
	}{
		"enforced": {func(d *v1alpha1.ApplicationDefinition) { d.Spec.Enforced = true }, nil},
		"default":  {func(d *v1alpha1.ApplicationDefinition) { d.Spec.Default = true }, nil},
		"both":     {func(d *v1alpha1.ApplicationDefinition) { d.Spec.Default, d.Spec.Enforced = true, true }, []string{"spec.enforced"}},
		"deprecated": {func(d *v1alpha1.ApplicationDefinition) {
			d.Spec.Enforced, d.Spec.Versions[0].Deprecated = true, true
		}, []string{"spec.defaultVersion"}},
		"deprecated, and named": {func(d *v1alpha1.ApplicationDefinition) {
			d.Spec.Enforced, d.Spec.Versions[0].Deprecated, d.Spec.DefaultVersion = true, true, "1.0.0"
		}, nil},
		"a long name": {func(d *v1alpha1.ApplicationDefinition) {
			d.Spec.Default, d.Name = true, strings.Repeat("a", 54)
		}, []string{"spec.default"}},
		"no name of a namespace": {func(d *v1alpha1.ApplicationDefinition) { d.Spec.Default, d.Name = true, "a.b" }, []string{"spec.defaultNamespace"}},
		"with a namespace": {func(d *v1alpha1.ApplicationDefinition) {
			d.Spec.Default, d.Name, d.Spec.DefaultNamespace = true, "a.b", &v1alpha1.TargetNamespace{Name: "a"}
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := &v1alpha1.ApplicationDefinition{}
			d.Name = "web"
			d.Spec.Versions = []v1alpha1.ApplicationVersion{{Version: "1.0.0", Template: &v1alpha1.ApplicationTemplate{
				Source: v1alpha1.ApplicationSource{Helm: &v1alpha1.HelmSource{URL: "https://charts.example.com", ChartName: "web", ChartVersion: "1.0.0"}},
			}}}
			tc.change(d)
			var fields []string
			for _, err := range validation.ValidateApplicationDefinition(d, nil) {
				fields = append(fields, err.Field)
			}
			assert.Equal(t, tc.fields, fields)
		})
	}
}
