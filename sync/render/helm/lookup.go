package helm

import (
	"path"
	"regexp"

	"helm.sh/helm/v3/pkg/chart"
)

// lookup is the template function that reads from the cluster, as templates call it.
var lookup = regexp.MustCompile(`\{\{[^}]*\blookup\b`)

// LookingUp returns a template of a chart, or of one of its subcharts, that looks up objects of the
// cluster; empty if there is none. Without Options.Cluster it finds nothing, as it does before an
// install.
func LookingUp(c *chart.Chart) string {
	for _, template := range c.Templates {
		if lookup.Match(template.Data) {
			return path.Join(c.ChartFullPath(), template.Name)
		}
	}
	for _, sub := range c.Dependencies() {
		if template := LookingUp(sub); template != "" {
			return template
		}
	}
	return ""
}
