package env

import (
	"fmt"
	"path/filepath"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
)

// loadChart loads the chart in dir together with the dependencies that its
// Chart.yaml names by file://, and applies the changes.
func loadChart(dir string, changes []func(*chart.Chart)) (*chart.Chart, error) {
	c, err := loader.Load(dir)
	if err != nil {
		return nil, fmt.Errorf("load chart %s: %w", dir, err)
	}
	have := map[string]bool{}
	for _, d := range c.Dependencies() {
		have[d.Name()] = true
	}
	for _, d := range c.Metadata.Dependencies {
		path, local := strings.CutPrefix(d.Repository, "file://")
		if have[d.Name] || !local {
			continue
		}
		dependency, err := loadChart(filepath.Join(dir, path), nil)
		if err != nil {
			return nil, err
		}
		c.AddDependency(dependency)
	}
	for _, change := range changes {
		change(c)
	}
	return c, nil
}
