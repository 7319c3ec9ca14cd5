package restore

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/openapi"
)

// kustomize knows which fields of built-in kinds refer to other objects by their name alone. It is made
// to rename each object to something that occurs nowhere else, and where that turns up in its result, the
// name of the object belongs. Nothing else of the result is used.

const (
	// indexAnnotation tells the objects apart that are given to kustomize.
	indexAnnotation = "restore.apps.waybill.dev/index"
	// placeholder comes before the index of an object in the name that it is given meanwhile.
	placeholder = "restored-by-waybill-5f2c9a1e-"
)

// referrer is one object that may refer to others, and what is given to kustomize for it.
type referrer struct {
	object map[string]any
	stub   map[string]any
}

// untyped changes references that are a name alone.
func (r references) untyped() error {
	if !r.renames() {
		return nil
	}
	referrers := r.referrers()
	built, err := r.build(referrers)
	if err != nil {
		// Its errors quote whole objects, with whatever is secret in them.
		return errors.New("kustomize cannot tell which objects refer to the renamed ones: two objects of kinds with the same name, in different groups, may have the same name; rename one of them by a rule with a selector")
	}
	for _, resource := range built {
		i, err := strconv.Atoi(resource.annotations[indexAnnotation])
		if err != nil || i < 0 || i >= len(referrers) {
			return errors.New("kustomize returned an object that it was not given")
		}
		r.insert(referrers[i].object, resource.content)
	}
	return nil
}

func (r references) renames() bool {
	for _, o := range r.objects {
		if o.name != o.was.Name {
			return true
		}
	}
	return false
}

// referrers returns all objects, and after them the Pods of health checks.
func (r references) referrers() []referrer {
	var list []referrer
	var pods []referrer
	for _, o := range r.objects {
		content := maps.Clone(o.Object)
		for _, field := range []string{"data", "binaryData", "stringData"} {
			delete(content, field) // it is large, may be secret, and refers to nothing
		}
		content["metadata"] = map[string]any{"name": o.was.Name, "namespace": r.from, "annotations": plain(o.GetAnnotations())}
		list = append(list, referrer{object: o.Object, stub: content})
		pod, _, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "healthCheck", "template")
		if pod, ok := pod.(map[string]any); ok && o.is(applicationKind) {
			pods = append(pods, referrer{object: pod, stub: map[string]any{
				"apiVersion": "v1", "kind": "Pod", "spec": pod["spec"],
				"metadata": map[string]any{"name": "health-check-of-" + o.was.Name, "namespace": r.from},
			}})
		}
	}
	return append(list, pods...)
}

// plain returns annotations without those that kustomize acts on.
func plain(annotations map[string]string) map[string]string {
	maps.DeleteFunc(annotations, func(key, _ string) bool {
		return strings.Contains(key, "config.kubernetes.io/") || strings.Contains(key, "config.k8s.io/")
	})
	return annotations
}

// built is one object of kustomize's result.
type built struct {
	content     map[string]any
	annotations map[string]string
}

// prepare makes kyaml parse the schema of the built-in kinds once, which is not safe while it is read.
var prepare = sync.OnceFunc(func() { openapi.Schema() })

// build runs kustomize. It is known to panic on some malformed inputs.
func (r references) build(referrers []referrer) (results []built, err error) {
	defer func() {
		if crash := recover(); crash != nil {
			err = fmt.Errorf("kustomize crashed: %v", crash)
		}
	}()
	prepare()
	files, err := r.files(referrers)
	if err != nil {
		return nil, err
	}
	result, err := krusty.MakeKustomizer(&krusty.Options{
		Reorder: krusty.ReorderOptionNone, LoadRestrictions: types.LoadRestrictionsRootOnly, PluginConfig: types.DisabledPluginConfig(),
	}).Run(files, "/")
	if err != nil {
		return nil, err
	}
	return decoded(result)
}

func decoded(result resmap.ResMap) ([]built, error) {
	var list []built
	for _, resource := range result.Resources() {
		content, err := resource.Map()
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", resource.CurId(), err)
		}
		list = append(list, built{content, resource.GetAnnotations()})
	}
	return list, nil
}

// files returns a kustomization that renames the objects.
func (r references) files(referrers []referrer) (filesys.FileSystem, error) {
	kustomization := types.Kustomization{Resources: []string{"objects.yaml"}}
	var objects []byte
	for i, ref := range referrers {
		metadata := ref.stub["metadata"].(map[string]any)
		annotations, _ := metadata["annotations"].(map[string]string)
		metadata["annotations"] = with(annotations, indexAnnotation, strconv.Itoa(i))
		document, err := json.Marshal(ref.stub)
		if err != nil {
			return nil, fmt.Errorf("encode object: %w", err)
		}
		objects = append(append(objects, document...), "\n---\n"...)
		if i < len(r.objects) && r.objects[i].name != r.objects[i].was.Name {
			kustomization.Patches = append(kustomization.Patches, types.Patch{
				Target:  &types.Selector{AnnotationSelector: indexAnnotation + "=" + strconv.Itoa(i)},
				Patch:   fmt.Sprintf(`[{"op": "replace", "path": "/metadata/name", "value": %q}]`, placeholder+strconv.Itoa(i)),
				Options: &types.PatchArgs{AllowNameChange: true},
			})
		}
	}
	document, err := json.Marshal(kustomization)
	if err != nil {
		return nil, fmt.Errorf("encode kustomization: %w", err)
	}
	files := filesys.MakeFsInMemory()
	for name, content := range map[string][]byte{"/objects.yaml": objects, "/kustomization.yaml": document} {
		if err := files.WriteFile(name, content); err != nil {
			return nil, fmt.Errorf("write %s: %w", name, err)
		}
	}
	return files, nil
}

func with(values map[string]string, key, value string) map[string]string {
	all := map[string]string{key: value}
	maps.Copy(all, values)
	return all
}

// insert puts names into an object wherever the result has a placeholder.
func (r references) insert(object, result map[string]any) {
	for field, value := range object {
		object[field] = r.inserted(value, result[field])
	}
}

func (r references) inserted(value, result any) any {
	switch value := value.(type) {
	case string:
		if text, ok := result.(string); ok && text != value {
			return r.named(value, text)
		}
	case map[string]any:
		if result, ok := result.(map[string]any); ok {
			r.insert(value, result)
		}
	case []any:
		if result, ok := result.([]any); ok && len(result) == len(value) {
			for i := range value {
				value[i] = r.inserted(value[i], result[i])
			}
		}
	}
	return value
}

// named returns the name of the object whose placeholder a text is; otherwise value.
func (r references) named(value, text string) string {
	index, ok := strings.CutPrefix(text, placeholder)
	if i, err := strconv.Atoi(index); ok && err == nil && i < len(r.objects) {
		return r.objects[i].name
	}
	return value
}
