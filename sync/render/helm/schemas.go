package helm

import (
	"encoding/json"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"

	"waybill.dev/waybill/sync/render/values/schema"
)

// Schemas returns the schemas of a chart and of its subcharts, as Helm would apply them to values. A text
// that is no JSON is left out: no chart is installed with it.
func Schemas(c *chart.Chart) *schema.Bundle {
	bundle := &schema.Bundle{}
	if json.Valid(c.Schema) {
		bundle.Schema = c.Schema
	}
	for _, sub := range c.Dependencies() {
		below := Schemas(sub)
		if below.Empty() {
			continue
		}
		listed := false
		for _, dependency := range c.Metadata.Dependencies {
			if dependency == nil || dependency.Name != sub.Name() {
				continue
			}
			listed = true
			if chartutil.IsCompatibleRange(dependency.Version, sub.Metadata.Version) {
				bundle.Subcharts = append(bundle.Subcharts, subchart(dependency, below))
			}
		}
		if !listed {
			bundle.Subcharts = append(bundle.Subcharts, schema.Subchart{Name: sub.Name(), Bundle: *below})
		}
	}
	return bundle
}

// subchart returns the schema of a subchart as a dependency uses it.
func subchart(dependency *chart.Dependency, below *schema.Bundle) schema.Subchart {
	sub := schema.Subchart{Name: dependency.Name, Bundle: *below}
	if dependency.Alias != "" {
		sub.Name = dependency.Alias
	}
	sub.Optional = dependency.Condition != "" || len(dependency.Tags) > 0
	sub.Condition, _, _ = strings.Cut(strings.TrimSpace(dependency.Condition), ",")
	return sub
}
