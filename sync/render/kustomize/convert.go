package kustomize

import (
	"errors"
	"path"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"

	"waybill.dev/waybill/api/expansion"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/render/internal/yamlvalue"
)

// convert returns the objects that kustomize has built.
func convert(built resmap.ResMap, v *view) ([]manifest.Object, []manifest.Problem) {
	refused := func(format string, args ...any) ([]manifest.Object, []manifest.Problem) {
		return nil, []manifest.Problem{exceeded(v.top, format, args...).problem()}
	}
	if built.Size() > v.limits.Objects {
		return refused("the build makes too many objects (limit Objects is %d)", v.limits.Objects)
	}
	var objects []manifest.Object
	var problems []manifest.Problem
	var sum expansion.Size
	for _, r := range built.Resources() {
		object, problem := v.object(r)
		if problem != nil {
			sum.Bytes += len(problem.Error())
			problems = append(problems, *problem)
		} else {
			sum.Add(object.Object)
			objects = append(objects, object)
		}
		switch {
		case sum.Values > v.limits.Values:
			return refused("the build makes too many values (limit Values is %d)", v.limits.Values)
		case sum.Bytes > v.limits.ObjectBytes:
			return refused("the build makes too much text (limit ObjectBytes is %d)", v.limits.ObjectBytes)
		}
	}
	objects, duplicates := manifest.Unique(objects)
	return objects, append(problems, duplicates...)
}

// object converts one object. Its values are the same as those that kubectl reads from the output
// of kustomize build.
func (v *view) object(r *resource.Resource) (manifest.Object, *manifest.Problem) {
	file := v.origin(r)
	id := manifest.ID{
		Group: r.GetGvk().Group, Version: r.GetGvk().Version, Kind: r.GetGvk().Kind,
		Namespace: r.GetNamespace(), Name: r.GetName(),
	}
	value, err := yamlvalue.FromNode(r.YNode(), 0, yamlvalue.Limits{
		Depth: v.limits.Depth, AliasNodes: v.limits.AliasNodes, AliasBytes: v.limits.AliasBytes,
	})
	var flaw *yamlvalue.Flaw
	if errors.As(err, &flaw) {
		return manifest.Object{}, &manifest.Problem{ID: id, File: file, Reason: flaw.Reason, Message: flaw.Message}
	}
	content, ok := value.(map[string]any)
	if !ok || id.Kind == "" || id.Name == "" {
		return manifest.Object{}, &manifest.Problem{
			ID: id, File: file, Reason: manifest.ReasonInvalidManifest, Message: "kustomize made something that is not an object",
		}
	}
	if manifest.IsEncrypted(content) {
		return manifest.Object{}, &manifest.Problem{ID: id, File: file, Reason: manifest.ReasonInvalidManifest, Message: manifest.EncryptedMessage}
	}
	return manifest.Object{Unstructured: &unstructured.Unstructured{Object: content}, File: file}, nil
}

// origin returns the file that an object is from or, for a generated one, the kustomization that
// generates it. It removes the annotation with this information, unless the user wants it.
func (v *view) origin(r *resource.Resource) string {
	origin, err := r.GetOrigin()
	if err != nil || origin == nil {
		return v.top
	}
	if !v.origins {
		if err := r.SetOrigin(nil); err != nil {
			return v.top
		}
	}
	for _, file := range []string{origin.Path, origin.ConfiguredIn} {
		if file != "" {
			return path.Join(path.Dir(v.top), file)
		}
	}
	return v.top
}
