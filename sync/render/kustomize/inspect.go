package kustomize

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/kustomize/api/types"

	"waybill.dev/waybill/api/expansion"
	"waybill.dev/waybill/sync/manifest"
)

// kustomization checks a kustomization file for unsupported features. The top one is returned with
// a change: it asks kustomize to annotate each object with the file that it is from.
func (v *view) kustomization(name string, content []byte) ([]byte, error) {
	if err := v.checkAliases(name, content); err != nil {
		return nil, err
	}
	var k types.Kustomization
	if err := k.Unmarshal(content); err != nil {
		// Kustomize reports it better.
		return content, nil
	}
	if message := unsupported(&k); message != "" {
		return nil, &refusal{file: name, reason: manifest.ReasonBuildFailed, message: message}
	}
	if err := v.conceal(name, &k); err != nil {
		return nil, err
	}
	if name != v.top || k.CheckEmpty() != nil {
		return content, nil
	}
	for _, option := range k.BuildMetadata {
		v.origins = v.origins || option == types.OriginAnnotations
	}
	if !v.origins {
		k.BuildMetadata = append(k.BuildMetadata, types.OriginAnnotations)
	}
	content, err := json.Marshal(k)
	if err != nil {
		return nil, fmt.Errorf("encode kustomization %s: %w", name, err)
	}
	return content, nil
}

// unsupported returns what a kustomization asks for that is not supported here, or "".
func unsupported(k *types.Kustomization) string {
	switch {
	case len(k.HelmCharts) > 0, len(k.HelmChartInflationGenerator) > 0, k.HelmGlobals != nil:
		return "Helm charts within a kustomization are not supported; offer the chart by an ApplicationDefinition"
	case len(k.Generators) > 0, len(k.Transformers) > 0, len(k.Validators) > 0:
		return "generators, transformers and validators are not supported, since they run plugins; " +
			"use the kustomization's own fields, such as patches, labels and configMapGenerator"
	case len(k.OpenAPI) > 0:
		return "openapi is not supported, since it would change how every other kustomization is built"
	}
	for _, p := range loads(k) {
		if isRemote(p) {
			return fmt.Sprintf("%q is remote, and only this repository is read; copy it into the repository", p)
		}
	}
	return ""
}

// loads lists everything that a kustomization makes kustomize load, including by deprecated fields.
//
//nolint:staticcheck // deprecated fields are read as any other
func loads(k *types.Kustomization) []string {
	var out []string
	for _, list := range [][]string{k.Resources, k.Bases, k.Components, k.Crds, k.Configurations} {
		out = append(out, list...)
	}
	for _, p := range k.PatchesStrategicMerge {
		if !isInline(p) {
			out = append(out, string(p))
		}
	}
	for _, p := range k.Patches {
		out = append(out, p.Path)
	}
	for _, p := range k.PatchesJson6902 {
		out = append(out, p.Path)
	}
	for _, r := range k.Replacements {
		out = append(out, r.Path)
	}
	for _, g := range k.ConfigMapGenerator {
		out = append(out, sources(g.KvPairSources)...)
	}
	for _, g := range k.SecretGenerator {
		out = append(out, sources(g.KvPairSources)...)
	}
	return out
}

// sources lists the files of a generator, which may be given as key=file.
func sources(s types.KvPairSources) []string {
	out := append([]string{s.EnvSource}, s.EnvSources...)
	for _, f := range s.FileSources {
		out = append(out, f[strings.LastIndex(f, "=")+1:])
	}
	return out
}

// isRemote reports whether kustomize would take a path for something that is not in the repository:
// a URL, or something that git clones. It errs on the safe side.
func isRemote(p string) bool {
	lower := strings.TrimPrefix(strings.ToLower(p), "git::")
	for _, prefix := range []string{"http:", "https:", "ssh:", "file:", "git:", "github.com/", "github.com:"} {
		if strings.HasPrefix(lower, prefix) {
			return true
		}
	}
	first, _, _ := strings.Cut(lower, "/")
	return strings.Index(first, "@") > 0
}

// checkAliases rejects a text that expands to too much by its aliases: kustomize writes them out.
func (v *view) checkAliases(name string, content []byte) error {
	var tooLarge *expansion.TooLargeError
	err := expansion.Text(content, expansion.Limits{AliasNodes: v.limits.AliasNodes, AliasBytes: v.limits.AliasBytes})
	switch {
	case errors.As(err, &tooLarge):
		return exceeded(name, "%s", tooLarge)
	case err != nil:
		return failed(name, "%s", err)
	}
	return nil
}
