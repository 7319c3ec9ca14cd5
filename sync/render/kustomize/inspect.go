package kustomize

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/types"

	"waybill.dev/waybill/api/expansion"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/render/internal/yamlvalue"
)

// kustomization checks a kustomization file for unsupported features. The top one is returned with
// a change: it asks kustomize to annotate each object with the file that it is from.
func (v *view) kustomization(name string, content []byte) ([]byte, error) {
	if err := v.inspect(name, content); err != nil {
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
	if err := v.expect(name, &k); err != nil {
		return nil, err
	}
	v.work.everywhere(&k)
	if err := v.checkWork(); err != nil {
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

// inspect rejects a text that takes too much memory once it is parsed, or expands to too much by its
// aliases: kustomize writes them out.
func (v *view) inspect(name string, content []byte) error {
	if v.nodes += yamlvalue.Nodes(content); v.nodes > v.limits.Nodes {
		return exceeded(name, "the build reads too many values (limit Nodes is %d)", v.limits.Nodes)
	}
	var tooLarge *expansion.TooLargeError
	err := expansion.Text(content, expansion.Limits{AliasNodes: v.limits.AliasNodes, AliasBytes: v.limits.AliasBytes})
	switch {
	case errors.As(err, &tooLarge):
		return exceeded(name, "%s", tooLarge)
	case err != nil:
		return failed(name, "%s", err)
	}
	if mayHoldAliases(content) || bytes.ContainsRune(content, '\\') { // which the signs may be written with
		for document := range documents(content) {
			v.texts(name, document)
		}
	}
	return nil
}

// mayHoldAliases reports whether a text, or one of those in it that have no escapes, may have aliases.
func mayHoldAliases(text []byte) bool {
	return bytes.ContainsRune(text, '&') && bytes.ContainsRune(text, '*')
}

// texts looks at the texts in a value as text does.
func (v *view) texts(name string, n *yaml.Node) {
	v.text(name, []byte(n.Value))
	for _, child := range n.Content {
		v.texts(name, child)
	}
}

// text notes a text that takes too much memory once it is parsed, or expands to too much by its
// aliases. Whether kustomize parses it, too, depends on where the paths of replacements lead.
func (v *view) text(name string, text []byte) {
	if !mayHoldAliases(text) || v.embedded != nil {
		return
	}
	if v.embeddedNodes += yamlvalue.Nodes(text); v.nodes+v.embeddedNodes > v.limits.Nodes {
		v.embedded = exceeded(name, "the YAML in its texts, which replacements might change, holds too many values (limit Nodes is %d)", v.limits.Nodes)
		return
	}
	var tooLarge *expansion.TooLargeError
	err := expansion.Text(text, expansion.Limits{AliasNodes: v.limits.AliasNodes, AliasBytes: v.limits.AliasBytes})
	if errors.As(err, &tooLarge) {
		v.embedded = exceeded(name, "in the YAML in one of its texts, which replacements might change, %s", tooLarge)
	}
}

// checkWork rejects a build that would do too much, as far as it has been read.
func (v *view) checkWork() error {
	w := &v.work
	changes, growth := w.total()
	switch {
	case v.embedded != nil && len(w.all) > 0:
		return v.embedded
	case w.objects > v.limits.Objects:
		return exceeded(v.top, "the build makes too many objects (limit Objects is %d)", v.limits.Objects)
	case len(w.all) > v.limits.Replacements:
		return exceeded(v.top, "the build has too many replacements (limit Replacements is %d)", v.limits.Replacements)
	case changes > float64(v.limits.Changes):
		return exceeded(v.top, "the build makes too many changes to too many objects; split it (limit Changes is %d)", v.limits.Changes)
	case w.comparisons() > v.limits.Comparisons:
		return exceeded(v.top, "the build has too many patches for that many objects; split it (limit Comparisons is %d)", v.limits.Comparisons)
	case growth > float64(v.limits.Growth):
		return exceeded(v.top, "the build writes too much text to too many objects; make the text smaller, "+
			"or let patches and replacements name the objects that need it (limit Growth is %d)", v.limits.Growth)
	case w.chained():
		return failed(v.top, "replacements read what they or others have written, so that it would grow again and again; "+
			"let them read fields that no replacement writes")
	case w.parsesPieces():
		return failed(v.top, "replacements put a text together by a delimiter, and others write into the YAML in that text; "+
			"let them write what others do not put together")
	}
	return nil
}
