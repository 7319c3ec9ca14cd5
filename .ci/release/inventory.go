package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// inventoryType is the media type of a bill of materials.
const inventoryType = "application/vnd.cyclonedx+json"

// inventory returns the bill of materials of the programs in a folder, as CycloneDX in JSON: Go
// writes into each program which modules it was linked from.
func inventory(dir, version string) ([]byte, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	modules, toolchain := map[string]*debug.Module{}, ""
	for _, f := range files {
		info, err := buildinfo.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return nil, fmt.Errorf("bill of materials: %w", err)
		}
		toolchain = info.GoVersion
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			modules[m.Path+"@"+m.Version] = m
		}
	}
	components := []cyclonedx.Component{component("std", toolchain, "")}
	for _, key := range slices.Sorted(maps.Keys(modules)) {
		m := modules[key]
		components = append(components, component(m.Path, m.Version, m.Sum))
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Component: &cyclonedx.Component{
		Type: cyclonedx.ComponentTypeApplication, Name: "waybill", Version: version,
	}}
	bom.Components = &components
	var out bytes.Buffer
	if err := cyclonedx.NewBOMEncoder(&out, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		return nil, fmt.Errorf("bill of materials: %w", err)
	}
	return out.Bytes(), nil
}

// component describes a Go module; sum is what go.sum says of it.
func component(path, version, sum string) cyclonedx.Component {
	url := fmt.Sprintf("pkg:golang/%s@%s", path, version)
	c := cyclonedx.Component{BOMRef: url, Type: cyclonedx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: url}
	if sum != "" {
		c.Properties = &[]cyclonedx.Property{{Name: "go:sum", Value: sum}}
	}
	return c
}
