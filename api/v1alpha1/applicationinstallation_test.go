package v1alpha1_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/api/v1alpha1"
)

// K36, C49: the target namespace is settled by the spec, or else by what was resolved first.
func TestApplicationInstallation_target(t *testing.T) {
	labelled := &v1alpha1.TargetNamespace{Name: "web", Create: true, Labels: map[string]string{"a": "b"}}
	for name, tc := range map[string]struct {
		reason    string
		named     *v1alpha1.TargetNamespace
		byDefault *v1alpha1.TargetNamespace
		resolved  string // empty: nothing was
		want      v1alpha1.TargetNamespace
	}{
		"named":                      {"the installation comes first", &v1alpha1.TargetNamespace{Name: "shop"}, labelled, "", v1alpha1.TargetNamespace{Name: "shop"}},
		"by default":                 {"then the definition", nil, labelled, "", *labelled},
		"its own":                    {"then its own", nil, nil, "", v1alpha1.TargetNamespace{Name: "team-a"}},
		"by default, resolved":       {"the definition goes on to say what it looks like", nil, labelled, "web", *labelled},
		"another default since":      {"nobody is moved", nil, labelled, "before", v1alpha1.TargetNamespace{Name: "before"}},
		"its own, and a default now": {"nobody is moved", nil, labelled, "team-a", v1alpha1.TargetNamespace{Name: "team-a"}},
	} {
		t.Run(name, func(t *testing.T) {
			inst, def := &v1alpha1.ApplicationInstallation{}, &v1alpha1.ApplicationDefinition{}
			inst.Namespace, inst.Spec.Namespace, def.Spec.DefaultNamespace = "team-a", tc.named, tc.byDefault
			if tc.resolved != "" {
				inst.Status.Application = &v1alpha1.ResolvedApplication{Namespace: tc.resolved}
			}
			assert.Equal(t, tc.want, inst.GetTarget(def), tc.reason)
		})
	}
}

// C60: whom an installation acts as; what it has acted as is kept when nothing names one.
func TestApplicationInstallation_serviceAccountName(t *testing.T) {
	for name, tc := range map[string]struct {
		reason                         string
		named, offered, fallback, past string
		want                           string
	}{
		"named":      {"the installation comes first", "own", "offered", "all", "past", "own"},
		"by default": {"then the definition", "", "offered", "all", "past", "offered"},
		"for all":    {"then who runs Waybill", "", "", "all", "past", "all"},
		"before":     {"nothing gains rights by not being named", "", "", "", "past", "past"},
		"none":       {"Waybill itself", "", "", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			inst, def := &v1alpha1.ApplicationInstallation{}, &v1alpha1.ApplicationDefinition{}
			inst.Spec.ServiceAccountName, def.Spec.ServiceAccountName = tc.named, tc.offered
			inst.Status.Application = &v1alpha1.ResolvedApplication{ServiceAccountName: tc.past}
			assert.Equal(t, tc.want, inst.GetServiceAccountName(def, tc.fallback), tc.reason)
		})
	}
	assert.Empty(t, (&v1alpha1.ApplicationInstallation{}).GetServiceAccountName(nil, ""), "there may be no definition")
}

// C49: the version is settled by the spec, or else by what was resolved first.
func TestApplicationInstallation_version(t *testing.T) {
	def := &v1alpha1.ApplicationDefinition{}
	def.Spec.DefaultVersion = "2.0.0"
	resolved := func(name string) *v1alpha1.ResolvedApplication {
		return &v1alpha1.ResolvedApplication{Name: name, Version: "1.0.0"}
	}
	for name, tc := range map[string]struct {
		reason   string
		named    string
		resolved *v1alpha1.ResolvedApplication
		def      *v1alpha1.ApplicationDefinition
		want     string
	}{
		"named":                 {"the installation comes first", "3.0.0", resolved("shop"), def, "3.0.0"},
		"by default":            {"then the definition", "", nil, def, "2.0.0"},
		"another default since": {"nobody is upgraded", "", resolved("shop"), def, "1.0.0"},
		"another application":   {"a version of something else is none", "", resolved("blog"), def, "2.0.0"},
		"not known":             {"there may be no definition", "", nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inst := &v1alpha1.ApplicationInstallation{}
			inst.Spec.ApplicationRef = v1alpha1.ApplicationReference{Name: "shop", Version: tc.named}
			inst.Status.Application = tc.resolved
			assert.Equal(t, tc.want, inst.GetVersion(tc.def), tc.reason)
		})
	}
}
