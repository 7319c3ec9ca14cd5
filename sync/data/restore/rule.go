package restore

import (
	"fmt"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
)

const (
	// maxValue bounds one value after its replacement, in bytes: annotations of an object may have as
	// much in all.
	maxValue = 256 << 10
	// maxGrowth bounds how much all rules together may add, in bytes.
	maxGrowth = 8 << 20
)

// rule is a substitution rule that is ready to be applied.
type rule struct {
	v1alpha1.ValueSubstitutionRule

	index    int
	selector labels.Selector
	pattern  *regexp.Regexp // of MatchRegex only
	hits     int32
	growth   *int // what all rules together may still add
}

// compile returns the rules, each with its pattern and its selector.
func compile(list []v1alpha1.ValueSubstitutionRule) ([]*rule, error) {
	growth := maxGrowth
	var rules []*rule
	for i, spec := range list {
		r := &rule{ValueSubstitutionRule: spec, index: i, selector: labels.Everything(), growth: &growth}
		var err error
		if spec.Selector != nil {
			if r.selector, err = metav1.LabelSelectorAsSelector(spec.Selector); err != nil {
				return nil, fmt.Errorf("%s.selector: %w", r, err)
			}
		}
		if spec.Match == v1alpha1.MatchRegex {
			if r.pattern, err = validation.CompilePattern(spec.OldValue); err != nil {
				return nil, fmt.Errorf("%s.oldValue: %w", r, err)
			}
		}
		rules = append(rules, r)
	}
	return rules, nil
}

// String returns the field that the rule is in.
func (r *rule) String() string { return fmt.Sprintf("spec.valueSubstitutionRules[%d]", r.index) }

// concerns reports whether the rule is for a label, an annotation or a variable of that name.
func (r *rule) concerns(key string) bool { return r.Key == "" || r.Key == key }

// removes reports whether the rule removes the keys whose values it matches.
func (r *rule) removes() bool { return r.NewValue == "" }

// replace returns a value after the replacement, and whether the rule matches it at all.
func (r *rule) replace(value string) (string, bool, error) {
	if !r.matches(value) {
		return value, false, nil
	}
	r.hits++
	if r.removes() {
		return "", true, nil
	}
	replaced, ok := r.replaced(value)
	*r.growth -= max(0, len(replaced)-len(value))
	if !ok || *r.growth < 0 {
		return "", true, fmt.Errorf("%s: the new values are too large", r)
	}
	return replaced, true, nil
}

func (r *rule) matches(value string) bool {
	switch r.Match {
	case v1alpha1.MatchExact:
		return value == r.OldValue
	case v1alpha1.MatchRegex:
		return r.pattern.MatchString(value)
	default:
		return strings.Contains(value, r.OldValue)
	}
}

// replaced returns the new value; false if it is larger than maxValue.
func (r *rule) replaced(value string) (string, bool) {
	if r.Match != v1alpha1.MatchRegex {
		size := len(value) + strings.Count(value, r.OldValue)*(len(r.NewValue)-len(r.OldValue))
		if size > maxValue {
			return "", false
		}
		return strings.ReplaceAll(value, r.OldValue, r.NewValue), true
	}
	var out []byte
	end := 0
	for _, match := range r.pattern.FindAllStringSubmatchIndex(value, -1) {
		out = append(out, value[end:match[0]]...)
		out = r.pattern.ExpandString(out, r.NewValue, value, match)
		if end = match[1]; len(out) > maxValue {
			return "", false
		}
	}
	out = append(out, value[end:]...)
	return string(out), len(out) <= maxValue
}

// strings applies the rule to a map of strings. It reports whether that has removed anything.
func (r *rule) strings(values map[string]any, check func(key, value string) error) (removed bool, err error) {
	for _, key := range sorted(values) {
		value, ok := values[key].(string)
		if !ok || !r.concerns(key) {
			continue
		}
		replaced, hit, err := r.replace(value)
		switch {
		case err != nil:
			return removed, err
		case !hit:
		case r.removes():
			delete(values, key)
			removed = true
		default:
			if err := check(key, replaced); err != nil {
				return removed, err
			}
			values[key] = replaced
		}
	}
	return removed, nil
}
