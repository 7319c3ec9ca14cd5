// Package charts embeds charts/waybill: the CustomResourceDefinitions of our kinds, for those who
// install them elsewhere or check objects against them without a cluster, and the chart itself, for a
// hub that installs it in user clusters.
package charts

import (
	"embed"
	"fmt"
	"io/fs"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

//go:embed waybill/crds/*.yaml
var files embed.FS

//go:embed waybill/Chart.yaml waybill/values.yaml waybill/values.schema.json waybill/files all:waybill/templates
var chart embed.FS

// Chart returns a file system with the chart in folder ChartName, as it is in the repository, without its
// CustomResourceDefinitions: who installs it elsewhere keeps those up to date as well, which Helm does
// not.
func Chart() fs.FS { return chart }

// ChartName is the name of the chart, and its folder.
const ChartName = "waybill"

// crdFolder is where the generator writes them.
const crdFolder = "waybill/crds"

// CRDs returns the CustomResourceDefinitions of our kinds, sorted by name. They are the
// caller's own.
func CRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	entries, err := fs.ReadDir(files, crdFolder)
	if err != nil {
		return nil, fmt.Errorf("read embedded CRDs: %w", err)
	}
	crds := make([]*apiextensionsv1.CustomResourceDefinition, len(entries))
	for i, entry := range entries {
		content, err := fs.ReadFile(files, crdFolder+"/"+entry.Name())
		if err != nil {
			return nil, fmt.Errorf("read embedded CRDs: %w", err)
		}
		crds[i] = &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(content, crds[i]); err != nil {
			return nil, fmt.Errorf("read embedded CRD %s: %w", entry.Name(), err)
		}
	}
	return crds, nil
}
