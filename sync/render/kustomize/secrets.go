package kustomize

import (
	"bytes"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/types"

	"waybill.dev/waybill/sync/manifest"
)

// conceal rejects what is wrong with the patches and the generators of a kustomization where kustomize
// would repeat their content, which may be that of a Secret. It notes the files of generators, which
// are checked once they are read.
func (v *view) conceal(kustomization string, k *types.Kustomization) error {
	//nolint:staticcheck // deprecated fields are read as any other
	for at, list := range map[string][]types.Patch{"patches": k.Patches, "patchesJson6902": k.PatchesJson6902} {
		for i, p := range list {
			if p.Patch == "" {
				continue
			}
			if err := v.inline(kustomization, fmt.Sprintf("%s[%d]", at, i), p.Patch, p.Target); err != nil {
				return err
			}
		}
	}
	for i, p := range k.PatchesStrategicMerge { //nolint:staticcheck // deprecated fields are read as any other
		if !isInline(p) {
			continue
		}
		if err := v.inline(kustomization, fmt.Sprintf("patchesStrategicMerge[%d]", i), string(p), nil); err != nil {
			return err
		}
	}
	for _, g := range k.ConfigMapGenerator {
		if err := v.generator(kustomization, "configMapGenerator", g.GeneratorArgs); err != nil {
			return err
		}
	}
	for _, g := range k.SecretGenerator {
		if err := v.generator(kustomization, "secretGenerator", g.GeneratorArgs); err != nil {
			return err
		}
	}
	return nil
}

// isInline reports whether a strategic merge patch is not the name of a file.
func isInline(p types.PatchStrategicMerge) bool {
	return strings.Contains(string(p), "\n") || strings.HasPrefix(strings.TrimSpace(string(p)), "{")
}

// inline checks a patch in a kustomization.
func (v *view) inline(kustomization, at, patch string, target *types.Selector) error {
	if err := v.checkAliases(kustomization, []byte(patch)); err != nil {
		return err
	}
	found := 0
	for document := range documents([]byte(patch)) {
		found++
		switch {
		case document.Kind == yaml.SequenceNode && target == nil:
			return failed(kustomization, "%s is a JSON patch, which needs a target", at)
		case document.Kind == yaml.MappingNode && text(field(document, "kind")) == "":
			return failed(kustomization, "%s lacks kind", at)
		case document.Kind == yaml.MappingNode && text(field(field(document, "metadata"), "name")) == "":
			return failed(kustomization, "%s lacks metadata.name", at)
		case document.Kind == yaml.ScalarNode:
			found--
		}
	}
	if found == 0 {
		return failed(kustomization, "%s is neither a strategic merge patch nor a JSON patch", at)
	}
	return nil
}

// generator checks the literals of a generator, and notes its files.
func (v *view) generator(kustomization, list string, g types.GeneratorArgs) error {
	for i, literal := range g.LiteralSources {
		if strings.Index(literal, "=") <= 0 {
			return failed(kustomization, "%s %q: literals[%d] is not of the form key=value", list, g.Name, i)
		}
	}
	dir := path.Dir(kustomization)
	note := func(file string, what content) {
		if file != "" {
			v.generated[clean(join(dir, file))] |= what
		}
	}
	for _, env := range append([]string{g.EnvSource}, g.EnvSources...) {
		note(env, lines)
	}
	for _, f := range g.FileSources {
		note(f[strings.LastIndex(f, "=")+1:], data)
	}
	return nil
}

// content is what a generator takes a file for.
type content uint8

const (
	// data are taken as they are.
	data content = 1 << iota
	// lines hold a variable each.
	lines
)

// checkLines checks a file of variables. Kustomize would repeat a wrong line.
func checkLines(file string, content []byte) error {
	for i, line := range strings.Split(string(content), "\n") {
		if !utf8.ValidString(line) {
			r := failed(file, "the line is not valid UTF-8")
			r.line = i + 1
			return r
		}
	}
	return nil
}

// documents returns the documents of a file that can be parsed, up to the first that cannot:
// kustomize says what is wrong with it.
func documents(content []byte) func(func(*yaml.Node) bool) {
	return func(yield func(*yaml.Node) bool) {
		decoder := yaml.NewDecoder(bytes.NewReader(content))
		for {
			var root yaml.Node
			if err := decoder.Decode(&root); err != nil {
				return
			}
			if len(root.Content) == 1 && root.Content[0].ShortTag() != "!!null" && !yield(root.Content[0]) {
				return
			}
		}
	}
}

// field returns the value of a key, or nil.
func field(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// text returns a scalar, or "".
func text(n *yaml.Node) string {
	if n == nil || n.Kind != yaml.ScalarNode {
		return ""
	}
	return n.Value
}

// join returns the path of a file that something in dir names.
func join(dir, file string) string {
	if path.IsAbs(file) {
		return file
	}
	return path.Join(dir, file)
}

func failed(file, format string, args ...any) *refusal {
	return &refusal{file: file, reason: manifest.ReasonBuildFailed, message: fmt.Sprintf(format, args...)}
}
