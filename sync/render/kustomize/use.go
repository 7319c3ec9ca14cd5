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

// depthOfData is how deep the texts of a generator are in the object that it makes.
const depthOfData = 2

// use looks at a file for one of the things that a kustomization uses it for.
type use func(file string, content []byte) error

// expect notes what a kustomization uses files for. Kustomize reads them later.
func (v *view) expect(kustomization string, k *types.Kustomization) error {
	dir := path.Dir(kustomization)
	on := func(p string, u use) {
		if p != "" {
			file := clean(path.Join(dir, p))
			if path.IsAbs(p) {
				file = clean(p)
			}
			v.uses[file] = append(v.uses[file], u)
		}
	}
	parsed := func(p string, u func(content []byte)) {
		on(p, func(file string, content []byte) error {
			if err := v.inspect(file, content); err != nil {
				return err
			}
			u(content)
			return nil
		})
	}
	//nolint:staticcheck // deprecated fields are read as any other
	for _, p := range append(k.Resources[:len(k.Resources):len(k.Resources)], k.Bases...) {
		parsed(p, v.work.resource)
	}
	for _, p := range k.Configurations {
		parsed(p, v.work.configuration)
	}
	for _, p := range k.Crds {
		on(p, func(file string, content []byte) error {
			if err := v.inspect(file, content); err != nil {
				return err
			}
			return v.work.definitions(file, content)
		})
	}
	for _, r := range k.Replacements {
		if r.Path == "" {
			v.work.addReplacement(r.Replacement)
		}
		parsed(r.Path, func(content []byte) {
			for _, one := range parseReplacements(content) {
				v.work.addReplacement(one)
			}
		})
	}
	if err := v.expectPatches(kustomization, k, parsed); err != nil {
		return err
	}
	for _, g := range k.ConfigMapGenerator {
		if err := v.generator(kustomization, "configMapGenerator", subject{"ConfigMap", g.Name}, g.KvPairSources, on); err != nil {
			return err
		}
	}
	for _, g := range k.SecretGenerator {
		if err := v.generator(kustomization, "secretGenerator", subject{"Secret", g.Name}, g.KvPairSources, on); err != nil {
			return err
		}
	}
	return nil
}

// expectPatches counts and checks the patches in a kustomization, and expects those in files.
//
//nolint:staticcheck // deprecated fields are read as any other
func (v *view) expectPatches(kustomization string, k *types.Kustomization, parsed func(string, func([]byte))) error {
	for at, list := range map[string][]types.Patch{"patches": k.Patches, "patchesJson6902": k.PatchesJson6902} {
		for i, p := range list {
			parsed(p.Path, func(content []byte) { v.work.patch(content, p.Target, p.Options) })
			if p.Patch == "" {
				continue
			}
			if err := v.inline(kustomization, fmt.Sprintf("%s[%d]", at, i), p.Patch, p.Target); err != nil {
				return err
			}
			v.work.patch([]byte(p.Patch), p.Target, p.Options)
		}
	}
	for i, p := range k.PatchesStrategicMerge {
		if !isInline(p) {
			parsed(string(p), func(content []byte) { v.work.patch(content, nil, nil) })
			continue
		}
		if err := v.inline(kustomization, fmt.Sprintf("patchesStrategicMerge[%d]", i), string(p), nil); err != nil {
			return err
		}
		v.work.patch([]byte(p), nil, nil)
	}
	return nil
}

// isInline reports whether a strategic merge patch is not the name of a file.
func isInline(p types.PatchStrategicMerge) bool {
	return strings.Contains(string(p), "\n") || strings.HasPrefix(strings.TrimSpace(string(p)), "{")
}

// inline checks a patch in a kustomization. Kustomize would repeat it when it says what is wrong, and
// it may be the patch of a Secret.
func (v *view) inline(kustomization, at, patch string, target *types.Selector) error {
	if err := v.inspect(kustomization, []byte(patch)); err != nil {
		return err
	}
	found := 0
	for document := range documents([]byte(patch)) {
		found++
		switch {
		case document.Kind == yaml.SequenceNode && target == nil:
			return failed(kustomization, "%s is a JSON patch, which needs a target", at)
		case document.Kind == yaml.MappingNode && subjectOf(document).kind == "":
			return failed(kustomization, "%s lacks kind", at)
		case document.Kind == yaml.MappingNode && subjectOf(document).name == "":
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

// generator checks the literals of a generator, which kustomize would repeat if one of them is wrong,
// and expects its files.
func (v *view) generator(kustomization, list string, makes subject, from types.KvPairSources, on func(string, use)) error {
	v.work.make(makes, amount{objects: 1})
	for i, literal := range from.LiteralSources {
		if strings.Index(literal, "=") <= 0 {
			return failed(kustomization, "%s %q: literals[%d] is not of the form key=value", list, makes.name, i)
		}
		v.work.add(makes, len(literal), 1)
		v.work.variables.read(literal)
		v.work.long[level{makes.kind, depthOfData}] += len(literal)
		_, value, _ := strings.Cut(literal, "=")
		v.text(kustomization, []byte(strings.Trim(value, `"'`))) // kustomize takes quotes off
	}
	for _, env := range append([]string{from.EnvSource}, from.EnvSources...) {
		on(env, func(file string, content []byte) error {
			v.work.add(makes, len(content), bytes.Count(content, []byte("\n"))+1)
			v.work.variables.read(string(content))
			v.work.long[level{makes.kind, depthOfData}] += len(content)
			for line := range bytes.Lines(content) {
				_, value, _ := bytes.Cut(line, []byte("="))
				v.text(file, value)
			}
			return checkLines(file, content)
		})
	}
	for _, f := range from.FileSources {
		on(f[strings.LastIndex(f, "=")+1:], func(file string, content []byte) error {
			v.work.add(makes, len(content), 1)
			v.work.variables.read(string(content))
			v.work.long[level{makes.kind, depthOfData}] += len(content)
			v.text(file, content)
			return nil
		})
	}
	return nil
}

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

func failed(file, format string, args ...any) *refusal {
	return &refusal{file: file, reason: manifest.ReasonBuildFailed, message: fmt.Sprintf(format, args...)}
}
