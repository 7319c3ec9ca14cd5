package helm

import (
	"slices"

	"helm.sh/helm/v3/pkg/chart"
)

// Clone copies the parts of a chart that Helm changes while it works with it: metadata, values, and
// the list of dependencies. The contents of files are shared, since they are never changed. Shared
// charts are cloned before every use.
func Clone(c *chart.Chart) *chart.Chart {
	clone := &chart.Chart{
		Lock:      c.Lock,
		Templates: slices.Clone(c.Templates),
		Values:    copyValues(c.Values),
		Schema:    c.Schema,
		Files:     slices.Clone(c.Files),
	}
	if c.Metadata != nil {
		metadata := *c.Metadata
		metadata.Dependencies = make([]*chart.Dependency, 0, len(c.Metadata.Dependencies))
		for _, dep := range c.Metadata.Dependencies {
			if dep != nil {
				copied := *dep
				copied.ImportValues = copyValue(dep.ImportValues).([]any)
				metadata.Dependencies = append(metadata.Dependencies, &copied)
			}
		}
		if c.Metadata.Dependencies == nil {
			metadata.Dependencies = nil
		}
		clone.Metadata = &metadata
	}
	for _, dep := range c.Dependencies() {
		clone.AddDependency(Clone(dep))
	}
	return clone
}
