package validation_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
)

// K9: what a definition requires is found among the installations of a cluster, by their versions.
func TestMissing_namesWhatNoInstallationIs(t *testing.T) {
	of := func(definition, version, resolved string) v1alpha1.ApplicationInstallation {
		i := v1alpha1.ApplicationInstallation{}
		i.Spec.ApplicationRef = v1alpha1.ApplicationReference{Name: definition, Version: version}
		if resolved != "" {
			i.Status.Application = &v1alpha1.ResolvedApplication{Name: definition, Version: resolved}
		}
		return i
	}
	for reason, c := range map[string]struct {
		version string
		there   []v1alpha1.ApplicationInstallation
		missing bool
	}{
		"nothing is there":               {missing: true},
		"another definition":             {there: []v1alpha1.ApplicationInstallation{of("cache", "1.2.0", "")}, missing: true},
		"any version":                    {there: []v1alpha1.ApplicationInstallation{of("db", "0.1.0", "")}},
		"any, of no known version":       {there: []v1alpha1.ApplicationInstallation{of("db", "", "")}},
		"in the range":                   {version: ">= 1.2", there: []v1alpha1.ApplicationInstallation{of("db", "1.2.0", "")}},
		"with a leading v":               {version: ">= 1.2", there: []v1alpha1.ApplicationInstallation{of("db", "v1.3", "")}},
		"below the range":                {version: ">= 1.2", there: []v1alpha1.ApplicationInstallation{of("db", "1.1.9", "")}, missing: true},
		"one of two fits":                {version: "1.x", there: []v1alpha1.ApplicationInstallation{of("db", "2.0.0", ""), of("db", "1.9.0", "")}},
		"what it was resolved to":        {version: "1.x", there: []v1alpha1.ApplicationInstallation{of("db", "", "1.4.0")}},
		"a range and no known version":   {version: "1.x", there: []v1alpha1.ApplicationInstallation{of("db", "", "")}, missing: true},
		"a range and no semver":          {version: "1.x", there: []v1alpha1.ApplicationInstallation{of("db", "stable", "")}, missing: true},
		"a prerelease is no release":     {version: ">= 1.2", there: []v1alpha1.ApplicationInstallation{of("db", "1.3.0-rc.1", "")}, missing: true},
		"a range that nobody can read":   {version: "newest", there: []v1alpha1.ApplicationInstallation{of("db", "1.3.0", "")}, missing: true},
		"a prerelease that is asked for": {version: ">= 1.2-0", there: []v1alpha1.ApplicationInstallation{of("db", "1.3.0-rc.1", "")}},
	} {
		t.Run(reason, func(t *testing.T) {
			def := &v1alpha1.ApplicationDefinition{}
			def.Spec.Requires = []v1alpha1.ApplicationRequirement{{Name: "db", Version: c.version}}
			var want []v1alpha1.ApplicationRequirement
			if c.missing {
				want = def.Spec.Requires
			}
			assert.Equal(t, want, validation.Missing(def, c.there))
		})
	}
}

// K9: a circle of installations is found wherever it begins, and each is named once.
func TestDependencyCycle_namesTheCircle(t *testing.T) {
	installation := func(name string, dependsOn ...v1alpha1.InstallationDependency) *v1alpha1.ApplicationInstallation {
		i := &v1alpha1.ApplicationInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}}
		i.Spec.DependsOn = dependsOn
		return i
	}
	on := func(name string) v1alpha1.InstallationDependency { return v1alpha1.InstallationDependency{Name: name} }
	there := map[types.NamespacedName]*v1alpha1.ApplicationInstallation{}
	for _, i := range []*v1alpha1.ApplicationInstallation{
		installation("one", on("gone"), on("two")), installation("two", v1alpha1.InstallationDependency{Name: "three", Namespace: "b"}),
		installation("beside", on("one")), installation("line", on("end")), installation("end"),
	} {
		there[types.NamespacedName{Namespace: i.Namespace, Name: i.Name}] = i
	}
	three := installation("three", v1alpha1.InstallationDependency{Name: "one", Namespace: "a"})
	three.Namespace = "b"
	there[types.NamespacedName{Namespace: "b", Name: "three"}] = three
	find := func(key types.NamespacedName) *v1alpha1.ApplicationInstallation { return there[key] }
	key := func(namespace, name string) types.NamespacedName {
		return types.NamespacedName{Namespace: namespace, Name: name}
	}
	one, two, last := key("a", "one"), key("a", "two"), key("b", "three")

	assert.Equal(t, []types.NamespacedName{one, two, last, one}, validation.DependencyCycle(there[one], find))
	assert.Equal(t, []types.NamespacedName{last, one, two, last}, validation.DependencyCycle(three, find))
	assert.Empty(t, validation.DependencyCycle(there[key("a", "beside")], find), "it waits for a circle, and is not in it")
	assert.Empty(t, validation.DependencyCycle(there[key("a", "line")], find))
	assert.Equal(t, []types.NamespacedName{one, one}, validation.DependencyCycle(installation("one", on("one")), find))
	assert.Equal(t, []types.NamespacedName{key("a", "new"), key("a", "other"), key("a", "new")}, validation.DependencyCycle(
		installation("new", on("other")), func(types.NamespacedName) *v1alpha1.ApplicationInstallation { return installation("other", on("new")) }),
		"what is written now counts, and not what was there")
}

// K9: a cycle does not show installations of other namespaces but those that its reader has named.
func TestDescribeCycle_hidesOtherNamespaces(t *testing.T) {
	inst := &v1alpha1.ApplicationInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web"}}
	inst.Spec.DependsOn = []v1alpha1.InstallationDependency{{Namespace: "b", Name: "named"}}
	var cycle []types.NamespacedName
	for _, key := range []string{"a/web", "b/named", "b/secret", "c/secret", "a/own", "c/other", "a/web"} {
		namespace, name, _ := strings.Cut(key, "/")
		cycle = append(cycle, types.NamespacedName{Namespace: namespace, Name: name})
	}
	assert.Equal(t, "a/web -> b/named -> others -> a/own -> others -> a/web", validation.DescribeCycle(inst, cycle))
}

// K9: definitions that require each other could never be installed.
func TestRequirementCycle_namesTheCircle(t *testing.T) {
	definition := func(name string, requires ...string) *v1alpha1.ApplicationDefinition {
		d := &v1alpha1.ApplicationDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, r := range requires {
			d.Spec.Requires = append(d.Spec.Requires, v1alpha1.ApplicationRequirement{Name: r})
		}
		return d
	}
	there := map[string]*v1alpha1.ApplicationDefinition{
		"web": definition("web", "db", "cache"), "db": definition("db", "operator"), "operator": definition("operator"), "cache": definition("cache", "db"),
	}
	find := func(name string) *v1alpha1.ApplicationDefinition { return there[name] }
	assert.Empty(t, validation.RequirementCycle(there["web"], find), "two ways to one are no circle")
	assert.Equal(t, []string{"operator", "web", "db", "operator"}, validation.RequirementCycle(definition("operator", "web"), find))
}

// K9: the schema of what depends on what.
func TestValidateDependsOn(t *testing.T) {
	on := func(list ...v1alpha1.InstallationDependency) []v1alpha1.InstallationDependency { return list }
	for reason, c := range map[string]struct {
		list []v1alpha1.InstallationDependency
		want string
	}{
		"another one":               {list: on(v1alpha1.InstallationDependency{Name: "db"}, v1alpha1.InstallationDependency{Name: "db", Namespace: "data"})},
		"of its name elsewhere":     {list: on(v1alpha1.InstallationDependency{Name: "web", Namespace: "data"})},
		"itself":                    {list: on(v1alpha1.InstallationDependency{Name: "web"}), want: "cannot depend on itself"},
		"itself, with namespace":    {list: on(v1alpha1.InstallationDependency{Name: "web", Namespace: "a"}), want: "cannot depend on itself"},
		"twice":                     {list: on(v1alpha1.InstallationDependency{Name: "db"}, v1alpha1.InstallationDependency{Name: "db", Namespace: "a"}), want: "Duplicate value"},
		"no name":                   {list: on(v1alpha1.InstallationDependency{}), want: "Required value"},
		"a condition":               {list: on(v1alpha1.InstallationDependency{Name: "db", Condition: "self.status.application.version.startsWith('1.')"})},
		"a condition of no boolean": {list: on(v1alpha1.InstallationDependency{Name: "db", Condition: "self.status.failures"}), want: "condition"},
		"a condition of something":  {list: on(v1alpha1.InstallationDependency{Name: "db", Condition: "status.failures == 0"}), want: "undeclared reference"},
		"too many":                  {list: make([]v1alpha1.InstallationDependency, 21), want: "must have at most 20 items"},
	} {
		t.Run(reason, func(t *testing.T) {
			obj := &v1alpha1.ApplicationInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web"}}
			obj.Spec.ApplicationRef.Name, obj.Spec.DependsOn = "web", c.list
			errs := validation.ValidateApplicationInstallation(obj, nil)
			if c.want == "" {
				assert.Empty(t, errs)
				return
			}
			assert.Contains(t, errs.ToAggregate().Error(), c.want)
		})
	}
}

// K9: what a definition requires is named once, with a range that can be read, and is not the definition itself.
func TestValidateRequires(t *testing.T) {
	for reason, c := range map[string]struct {
		list []v1alpha1.ApplicationRequirement
		want string
	}{
		"any and a range": {list: []v1alpha1.ApplicationRequirement{{Name: "db"}, {Name: "cache", Version: ">= 1.2, < 3"}}},
		"itself":          {list: []v1alpha1.ApplicationRequirement{{Name: "web"}}, want: "cannot require itself"},
		"twice":           {list: []v1alpha1.ApplicationRequirement{{Name: "db"}, {Name: "db", Version: "1.x"}}, want: "Duplicate value"},
		"no range":        {list: []v1alpha1.ApplicationRequirement{{Name: "db", Version: "newest"}}, want: "must be a range of semantic versions"},
		"no name":         {list: []v1alpha1.ApplicationRequirement{{Version: "1.x"}}, want: "Required value"},
	} {
		t.Run(reason, func(t *testing.T) {
			def := &v1alpha1.ApplicationDefinition{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
			def.Spec.Requires = c.list
			errs := validation.ValidateApplicationDefinition(def, nil).ToAggregate()
			if c.want == "" {
				assert.NotContains(t, errs.Error(), "requires")
				return
			}
			assert.Contains(t, errs.Error(), c.want)
		})
	}
}
