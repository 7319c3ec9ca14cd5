package validation_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
)

func restored(rule v1alpha1.ValueSubstitutionRule) *v1alpha1.StatefulApplication {
	return &v1alpha1.StatefulApplication{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "mongo"},
		Spec: v1alpha1.StatefulApplicationSpec{
			Source:                 &v1alpha1.DataSource{Type: v1alpha1.DataSourceSnapshot, SnapshotRef: &v1alpha1.SnapshotReference{Name: "monday"}},
			ValueSubstitutionRules: []v1alpha1.ValueSubstitutionRule{rule},
		},
	}
}

// S19, S20, S21, S23, S24, C18: what a schema cannot say of substitution rules.
func TestValidateStatefulApplication_substitutions(t *testing.T) {
	const name, label, annotation, env = v1alpha1.SubstitutionName, v1alpha1.SubstitutionLabel, v1alpha1.SubstitutionAnnotation, v1alpha1.SubstitutionEnvVar
	const exact, regex = v1alpha1.MatchExact, v1alpha1.MatchRegex
	rule := spec.Child("valueSubstitutionRules").Index(0)
	one := func(child string, value any) field.ErrorList {
		return field.ErrorList{field.Invalid(rule.Child(child), value, "")}
	}
	for title, tc := range map[string]struct {
		reason string
		rule   v1alpha1.ValueSubstitutionRule
		want   field.ErrorList
	}{
		"name":               {"as the example has it", v1alpha1.ValueSubstitutionRule{Type: name, OldValue: "mongo", NewValue: "mongo-clone"}, nil},
		"part of a name":     {"it need not be a name itself", v1alpha1.ValueSubstitutionRule{Type: name, OldValue: "mongo-", NewValue: "clone-"}, nil},
		"a path":             {"no object can have it", v1alpha1.ValueSubstitutionRule{Type: name, OldValue: "a", NewValue: "b/c"}, one("newValue", "b/c")},
		"label":              {"as the example has it", v1alpha1.ValueSubstitutionRule{Type: label, Key: "app.kubernetes.io/name", OldValue: "mongo", NewValue: "clone"}, nil},
		"label that goes":    {"S23", v1alpha1.ValueSubstitutionRule{Type: label, OldValue: "mongo"}, nil},
		"key of a label":     {"not a key", v1alpha1.ValueSubstitutionRule{Type: label, Key: "a b", OldValue: "a", NewValue: "b"}, one("key", "a b")},
		"part of a label":    {"it need not be a value itself", v1alpha1.ValueSubstitutionRule{Type: label, OldValue: "a", NewValue: "-b"}, nil},
		"not of a label":     {"no label can have it", v1alpha1.ValueSubstitutionRule{Type: label, OldValue: "a", NewValue: "b c"}, one("newValue", "b c")},
		"whole label":        {"it is the value", v1alpha1.ValueSubstitutionRule{Type: label, Match: exact, OldValue: "a", NewValue: "-b"}, one("newValue", "-b")},
		"annotation":         {"free text", v1alpha1.ValueSubstitutionRule{Type: annotation, Key: "a.example/b", OldValue: "a", NewValue: "b c\n"}, nil},
		"key of annotation":  {"not a key", v1alpha1.ValueSubstitutionRule{Type: annotation, Key: "/b", OldValue: "a"}, one("key", "/b")},
		"variable":           {"free text", v1alpha1.ValueSubstitutionRule{Type: env, Key: "DB_HOST", OldValue: "a", NewValue: "b c"}, nil},
		"key of a variable":  {"not a name", v1alpha1.ValueSubstitutionRule{Type: env, Key: "A=B", OldValue: "a"}, one("key", "A=B")},
		"pattern":            {"groups that there are", v1alpha1.ValueSubstitutionRule{Type: env, Match: regex, OldValue: `(\w+)\.(?P<ns>a)\.svc`, NewValue: "$1.${ns}.b$$"}, nil},
		"not a pattern":      {"it does not compile", v1alpha1.ValueSubstitutionRule{Type: env, Match: regex, OldValue: `(a`}, one("oldValue", "(a")},
		"backreference":      {"RE2 has none", v1alpha1.ValueSubstitutionRule{Type: env, Match: regex, OldValue: `(a)\1`}, one("oldValue", `(a)\1`)},
		"no such group":      {"nothing would be put in", v1alpha1.ValueSubstitutionRule{Type: env, Match: regex, OldValue: `(a)`, NewValue: "$2"}, one("newValue", "$2")},
		"runs on":            {"$1x is a group named 1x", v1alpha1.ValueSubstitutionRule{Type: env, Match: regex, OldValue: `(a)`, NewValue: "$1x"}, one("newValue", "$1x")},
		"group in a literal": {"a dollar sign is nothing special there", v1alpha1.ValueSubstitutionRule{Type: env, OldValue: `a`, NewValue: "$2"}, nil},
		"pattern of a name":  {"what comes of it is not known", v1alpha1.ValueSubstitutionRule{Type: name, Match: regex, OldValue: `^(.*)$`, NewValue: "b-$1"}, nil},
		"selector": {"of unknown operators", v1alpha1.ValueSubstitutionRule{Type: name, OldValue: "a", NewValue: "b",
			Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}},
			one("selector.matchExpressions[0].operator", metav1.LabelSelectorOperator("Near"))},
	} {
		t.Run(title, func(t *testing.T) {
			assertErrors(t, tc.want, validation.ValidateStatefulApplication(restored(tc.rule)), tc.reason)
		})
	}
}

// C18, C48: a pattern of a few bytes that stands for gigabytes is refused before it is compiled.
func TestCompilePattern_isBounded(t *testing.T) {
	for _, pattern := range []string{
		`(abcdefghij){1000}`, `((a{10}){10}){10}[a-z]{1001}`, `(` + strings.Repeat("a", 400) + `){8}`,
		strings.Repeat(`(x{900})`, 500), `(((a{1,10}){1,10}){1,10}b{100}){1,3}`,
	} {
		_, err := validation.CompilePattern(pattern)
		assert.Error(t, err, "%.40q", pattern)
	}
	for _, pattern := range []string{`^mongo-(\d+)\.`, `[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`, strings.Repeat("a", 1500), `.*`, `a{0}`} {
		_, err := validation.CompilePattern(pattern)
		assert.NoError(t, err, "%.40q", pattern)
	}
}

// FuzzCompilePattern: what is accepted is what Go's regexp accepts, and it matches quickly.
func FuzzCompilePattern(f *testing.F) {
	for _, seed := range []string{`a`, `(a{1000}){1000}`, `[^\x00]{5}`, `(?i)[k]{100}`, `\pL{99}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		if len(pattern) > 4096 {
			t.Skip()
		}
		re, err := validation.CompilePattern(pattern)
		if err != nil {
			return
		}
		require.Equal(t, pattern, re.String())
		re.ReplaceAllString(strings.Repeat("aK1- ", 100), "$1")
	})
}
