package validation

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"waybill.dev/waybill/api/v1alpha1"
)

// maxPatternSize bounds a regular expression once its repetitions are written out: matching takes time
// in proportion to it, and compiling takes memory.
const maxPatternSize = 2000

// CompilePattern compiles the oldValue of a rule with match Regex. A short one may stand for millions
// of instructions: it is refused before it is compiled.
func CompilePattern(pattern string) (*regexp.Regexp, error) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, err
	}
	if patternSize(parsed) > maxPatternSize {
		return nil, errors.New("the regular expression is too large: use shorter repetitions")
	}
	return regexp.Compile(pattern)
}

// patternSize returns how many instructions a pattern takes, or a number beyond maxPatternSize.
func patternSize(re *syntax.Regexp) int {
	size := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		size = min(size+patternSize(sub), maxPatternSize+1)
	}
	if re.Op == syntax.OpRepeat {
		size *= max(re.Min, re.Max, 1)
	}
	return min(size, maxPatternSize+1)
}

// validateSubstitutions checks what a schema cannot: patterns, keys and selectors.
func validateSubstitutions(rules []v1alpha1.ValueSubstitutionRule, fld *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range rules {
		rule, at := &rules[i], fld.Index(i)
		errs = append(errs, validateSelector(rule.Selector, at.Child("selector"))...)
		errs = append(errs, validateSubstitutedKey(rule, at.Child("key"))...)
		if rule.Match == v1alpha1.MatchRegex {
			errs = append(errs, validatePattern(rule, at)...)
			continue
		}
		errs = append(errs, validateNewValue(rule, at.Child("newValue"))...)
	}
	return errs
}

func validateSubstitutedKey(rule *v1alpha1.ValueSubstitutionRule, fld *field.Path) field.ErrorList {
	if rule.Key == "" {
		return nil
	}
	switch rule.Type {
	case v1alpha1.SubstitutionLabel, v1alpha1.SubstitutionAnnotation:
		return formatErrors(rule.Key, fld, validation.IsQualifiedName)
	case v1alpha1.SubstitutionEnvVar:
		return formatErrors(rule.Key, fld, validation.IsRelaxedEnvVarName)
	}
	return nil // the schema has refused it
}

func validatePattern(rule *v1alpha1.ValueSubstitutionRule, fld *field.Path) field.ErrorList {
	compiled, err := CompilePattern(rule.OldValue)
	if err != nil {
		return field.ErrorList{field.Invalid(fld.Child("oldValue"), rule.OldValue, err.Error())}
	}
	for _, group := range references(rule.NewValue) {
		n, err := strconv.Atoi(group)
		if err == nil && n <= compiled.NumSubexp() || err != nil && slices.Contains(compiled.SubexpNames(), group) {
			continue
		}
		return field.ErrorList{field.Invalid(fld.Child("newValue"), rule.NewValue, fmt.Sprintf(
			"oldValue has no group %q: write ${1} where letters or digits follow, and $$ for a dollar sign", group))}
	}
	return nil
}

// reference is a group in a replacement, or an escaped dollar sign, as regexp.Expand reads them.
var reference = regexp.MustCompile(`\$(\$|\w+|\{\w+\})`)

func references(newValue string) (groups []string) {
	for _, found := range reference.FindAllStringSubmatch(newValue, -1) {
		switch group := found[1]; {
		case group == "$":
		case group[0] == '{':
			groups = append(groups, group[1:len(group)-1])
		default:
			groups = append(groups, group)
		}
	}
	return groups
}

// partOfLabel are the characters that a value of a label may have.
var partOfLabel = regexp.MustCompile(`^[-A-Za-z0-9_.]*$`)

// validateNewValue refuses what no name and no label can have.
func validateNewValue(rule *v1alpha1.ValueSubstitutionRule, fld *field.Path) field.ErrorList {
	switch {
	case rule.NewValue == "":
	case rule.Type == v1alpha1.SubstitutionName:
		if strings.ContainsAny(rule.NewValue, "/%") {
			return field.ErrorList{field.Invalid(fld, rule.NewValue, "a name of an object has no '/' and no '%'")}
		}
	case rule.Type == v1alpha1.SubstitutionLabel && rule.Match == v1alpha1.MatchExact:
		return formatErrors(rule.NewValue, fld, validation.IsValidLabelValue)
	case rule.Type == v1alpha1.SubstitutionLabel && !partOfLabel.MatchString(rule.NewValue):
		return field.ErrorList{field.Invalid(fld, rule.NewValue, "a value of a label has letters, digits, '-', '_' and '.' only")}
	}
	return nil
}
