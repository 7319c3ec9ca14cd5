package install

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
)

// Missing describes what a definition requires and the cluster has not. It is nothing where the user may not list
// installations: admission knows.
func (s *Session) Missing(ctx context.Context, definition *v1alpha1.ApplicationDefinition) []string {
	if len(definition.Spec.Requires) == 0 {
		return nil
	}
	list := &v1alpha1.ApplicationInstallationList{}
	if err := s.client.List(ctx, list); err != nil {
		return nil
	}
	var names []string
	for _, r := range validation.Missing(definition, list.Items) {
		names = append(names, validation.DescribeRequirement(r))
	}
	return names
}

// Requirements returns installations of what a definition requires, directly and through others, and the
// cluster has not, in the order in which they are needed.
func (s *Session) Requirements(ctx context.Context, inst *v1alpha1.ApplicationInstallation, definition *v1alpha1.ApplicationDefinition) ([]*v1alpha1.ApplicationInstallation, error) {
	if len(definition.Spec.Requires) == 0 {
		return nil, nil
	}
	list := &v1alpha1.ApplicationInstallationList{}
	if err := s.client.List(ctx, list); err != nil {
		return nil, fmt.Errorf("look for what ApplicationDefinition %s requires: %w", definition.Name, s.Target.Explain(err))
	}
	p := &planning{Session: s, there: append(list.Items, *inst), namespace: inst.Namespace, account: inst.Spec.ServiceAccountName}
	err := p.add(ctx, definition)
	return p.added, err
}

// planning adds what is required to what is there.
type planning struct {
	*Session

	there              []v1alpha1.ApplicationInstallation
	added              []*v1alpha1.ApplicationInstallation
	namespace, account string
}

// add adds what a definition requires. What is planned counts as there, so that a cycle ends.
func (p *planning) add(ctx context.Context, definition *v1alpha1.ApplicationDefinition) error {
	for _, requirement := range validation.Missing(definition, p.there) {
		what := validation.DescribeRequirement(requirement)
		required, err := p.Definition(ctx, requirement.Name)
		if err != nil {
			return fmt.Errorf("ApplicationDefinition %s requires %s: %w", definition.Name, what, err)
		}
		version := best(required, requirement)
		if version == "" {
			return fmt.Errorf("ApplicationDefinition %s requires %s: ApplicationDefinition %s offers %s", definition.Name, what, required.Name, versionsOf(required))
		}
		if at := slices.IndexFunc(p.there, func(i v1alpha1.ApplicationInstallation) bool {
			return i.Namespace == p.namespace && i.Name == required.Name
		}); at >= 0 {
			return fmt.Errorf("ApplicationDefinition %s requires %s, and ApplicationInstallation/%s in %s is %s %s: upgrade it, or install what is required under another name",
				definition.Name, what, required.Name, p.namespace, p.there[at].Spec.ApplicationRef.Name, p.there[at].Spec.ApplicationRef.Version)
		}
		inst := &v1alpha1.ApplicationInstallation{}
		inst.Namespace, inst.Name = p.namespace, required.Name
		inst.Spec.ApplicationRef = v1alpha1.ApplicationReference{Name: required.Name, Version: version}
		inst.Spec.ServiceAccountName = p.account
		p.there = append(p.there, *inst)
		if err := p.add(ctx, required); err != nil {
			return err
		}
		p.added = append(p.added, inst)
	}
	return nil
}

// best returns the version of a definition to install for a requirement: the default if it fits, else
// the highest that does and is not deprecated, else the highest; empty if none fits.
func best(definition *v1alpha1.ApplicationDefinition, requirement v1alpha1.ApplicationRequirement) string {
	if version := definition.Spec.DefaultVersion; version != "" && validation.Fits(requirement, version) {
		return version
	}
	fitting := slices.DeleteFunc(slices.Clone(definition.Spec.Versions), func(v v1alpha1.ApplicationVersion) bool {
		return !validation.Fits(requirement, v.Version)
	})
	if len(fitting) == 0 {
		return ""
	}
	return slices.MaxFunc(fitting, func(a, b v1alpha1.ApplicationVersion) int {
		switch {
		case a.Deprecated && !b.Deprecated:
			return -1
		case b.Deprecated && !a.Deprecated:
			return 1
		}
		return compare(a.Version, b.Version)
	}).Version
}

// compare compares versions; one that is no semantic version is lower than all that are.
func compare(a, b string) int {
	left, errLeft := semver.NewVersion(a)
	right, errRight := semver.NewVersion(b)
	switch {
	case errLeft != nil && errRight != nil:
		return strings.Compare(a, b)
	case errLeft != nil:
		return -1
	case errRight != nil:
		return 1
	}
	return left.Compare(right)
}
