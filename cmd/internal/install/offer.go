package install

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/output"
)

// Definition returns a definition that the cluster offers. The error for one that it does not lists those
// of like names.
func (s *Session) Definition(ctx context.Context, name string) (*v1alpha1.ApplicationDefinition, error) {
	found := &v1alpha1.ApplicationDefinition{}
	err := s.client.Get(ctx, client.ObjectKey{Name: name}, found)
	if err == nil {
		return found, nil
	}
	if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("get ApplicationDefinition %s: %w", name, s.Target.Explain(err))
	}
	message := fmt.Sprintf("cluster %s offers no ApplicationDefinition %s", s.Target.Name(), name)
	list := &v1alpha1.ApplicationDefinitionList{}
	if s.client.List(ctx, list) == nil {
		var names []string
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		message += similar(name, names)
	}
	return nil, fmt.Errorf("%s", message)
}

// similar returns, to be appended to a message, the names that are like one, or else some that there are.
func similar(name string, names []string) string {
	var near []string
	for _, other := range names {
		if strings.Contains(other, name) || strings.Contains(name, other) || distance(name, other) <= max(1, len(name)/3) {
			near = append(near, other)
		}
	}
	switch {
	case len(near) > 0:
		return ": did you mean " + output.Enumerate(near, "definition") + "?"
	case len(names) > 0:
		return ": it offers " + output.Enumerate(names, "definition")
	}
	return ": it offers none"
}

// maxCompared is how long names are that are compared letter by letter.
const maxCompared = 64

// distance returns how many letters have to be inserted, left out or replaced to make one name of the
// other.
func distance(a, b string) int {
	if len(a) > maxCompared || len(b) > maxCompared {
		return maxCompared
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := before
			if a[i] != b[j] {
				cost = 1 + min(before, row[j], row[j+1])
			}
			before, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}

// Offered returns the version of a definition that a name means: its default for none.
func (s *Session) Offered(definition *v1alpha1.ApplicationDefinition, version string) (*v1alpha1.ApplicationVersion, error) {
	if version == "" {
		version = definition.Spec.DefaultVersion
	}
	if version == "" {
		return nil, fmt.Errorf("ApplicationDefinition %s has no default version: name one of %s", definition.Name, versionsOf(definition))
	}
	found := definition.GetVersion(version)
	if found == nil {
		return nil, fmt.Errorf("ApplicationDefinition %s has no version %s: it offers %s", definition.Name, version, versionsOf(definition))
	}
	if found.Deprecated {
		s.Warn("version %s of ApplicationDefinition %s is deprecated", found.Version, definition.Name)
	}
	return found, nil
}

// maxVersions is how many versions an error lists.
const maxVersions = 20

func versionsOf(definition *v1alpha1.ApplicationDefinition) string {
	var names []string
	for _, v := range definition.Spec.Versions {
		name := v.Version
		if v.Deprecated {
			name += " (deprecated)"
		}
		names = append(names, name)
	}
	if more := len(names) - maxVersions; more > 0 {
		names = append(slices.Clone(names[:maxVersions]), output.Count(more, "other"))
	}
	return strings.Join(names, ", ")
}
