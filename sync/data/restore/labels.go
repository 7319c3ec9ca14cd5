package restore

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// elsewhere are fields below which labels are those of objects that do not belong to the application:
// of Nodes, of namespaces, of volumes.
var elsewhere = []string{"nodeAffinity", "nodeSelector", "namespaceSelector", "allowedTopologies", "status"}

// claimFields are fields that hold claims, whose selectors are for volumes.
var claimFields = []string{"volumeClaimTemplates", "volumeClaimTemplate"}

// labelChange applies a rule to every label of an object, and to whatever selects by labels.
type labelChange struct {
	*rule
	object fmt.Stringer
}

// apply changes an object. What is a selector without being named so by its fields is one of the kind:
// spec.selector is a map of labels in a Service.
func (c labelChange) apply(object map[string]any, claim bool) error {
	if claim {
		return c.metadata(object)
	}
	spec, _ := object["spec"].(map[string]any)
	if selector, ok := spec["selector"].(map[string]any); ok && onlyStrings(selector) {
		if err := c.selector(selector, selector, "spec.selector"); err != nil {
			return err
		}
	}
	return c.walk(object, "")
}

func onlyStrings(values map[string]any) bool {
	for _, value := range values {
		if _, ok := value.(string); !ok {
			return false
		}
	}
	return true
}

func (c labelChange) walk(value any, path string) error {
	switch value := value.(type) {
	case []any:
		for i, item := range value {
			if err := c.walk(item, fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
	case map[string]any:
		return c.fields(value, path)
	}
	return nil
}

// fields changes one map, and everything below it.
func (c labelChange) fields(object map[string]any, path string) error {
	if err := c.metadata(object); err != nil {
		return err
	}
	if err := c.labelSelector(object, path); err != nil {
		return err
	}
	for _, field := range sorted(object) {
		if field == "metadata" || slices.Contains(elsewhere, field) {
			continue
		}
		if slices.Contains(claimFields, field) {
			if err := c.claims(object[field]); err != nil {
				return err
			}
			continue
		}
		if err := c.walk(object[field], strings.TrimPrefix(path+"."+field, ".")); err != nil {
			return err
		}
	}
	return nil
}

func (c labelChange) claims(value any) error {
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	for _, item := range list {
		if claim, ok := item.(map[string]any); ok {
			if err := c.metadata(claim); err != nil {
				return err
			}
		}
	}
	return nil
}

// metadata changes the labels of an object, or of a template.
func (c labelChange) metadata(object map[string]any) error {
	metadata, _ := object["metadata"].(map[string]any)
	values, _ := metadata["labels"].(map[string]any)
	_, err := c.strings(values, c.valid)
	return err
}

// labelSelector changes matchLabels and matchExpressions of a map that has them.
func (c labelChange) labelSelector(object map[string]any, path string) error {
	matchLabels, _ := object["matchLabels"].(map[string]any)
	if err := c.selector(matchLabels, object, path); err != nil {
		return err
	}
	list, _ := object["matchExpressions"].([]any)
	if len(list) == 0 {
		return nil
	}
	var kept []any
	for _, item := range list {
		keep, err := c.expression(item)
		if err != nil {
			return err
		}
		if keep {
			kept = append(kept, item)
		}
	}
	if len(kept) == len(list) {
		return nil
	}
	if object["matchExpressions"] = kept; len(kept) == 0 {
		delete(object, "matchExpressions")
	}
	return c.selecting(object, path)
}

// selector changes the labels that a selector asks for.
func (c labelChange) selector(values, selector map[string]any, path string) error {
	removed, err := c.strings(values, c.valid)
	if err != nil || !removed {
		return err
	}
	return c.selecting(selector, path)
}

// selecting refuses a selector that has nothing left: it would select everything.
func (c labelChange) selecting(selector map[string]any, path string) error {
	for _, value := range selector {
		switch value := value.(type) {
		case string:
			return nil
		case map[string]any:
			if len(value) > 0 {
				return nil
			}
		case []any:
			if len(value) > 0 {
				return nil
			}
		}
	}
	return fmt.Errorf("%s: it leaves nothing in %s of %s, which would then select everything", c.rule, path, c.object)
}

// expression changes the values of one of matchExpressions. It returns false if none is left.
func (c labelChange) expression(item any) (bool, error) {
	expression, _ := item.(map[string]any)
	key, _ := expression["key"].(string)
	list, _ := expression["values"].([]any)
	if len(list) == 0 || !c.concerns(key) {
		return true, nil
	}
	var values []any
	for _, item := range list {
		value, ok := item.(string)
		if !ok {
			return true, nil
		}
		replaced, hit, err := c.replace(value)
		if err != nil {
			return false, err
		}
		if hit && c.removes() {
			continue
		}
		if err := c.valid(key, replaced); err != nil {
			return false, err
		}
		values = append(values, replaced)
	}
	expression["values"] = values
	return len(values) > 0, nil
}

// valid returns an error if a label cannot have a value.
func (c labelChange) valid(key, value string) error {
	if faults := validation.IsValidLabelValue(value); len(faults) > 0 {
		return fmt.Errorf("%s: label %s of %s would be %q, which is not valid: %s", c.rule, key, c.object, value, faults[0])
	}
	return nil
}

func sorted[V any](values map[string]V) []string { return slices.Sorted(maps.Keys(values)) }
