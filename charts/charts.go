// Package charts embeds what charts/waybill installs beside programs: the
// CustomResourceDefinitions of our kinds, for those who install them elsewhere or check
// objects against them without a cluster.
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
