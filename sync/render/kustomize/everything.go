package kustomize

import "sigs.k8s.io/kustomize/api/types"

// everything is what kustomizations do to all objects: most of them have few below them, but which
// these are is not known before they are read.
type everything struct {
	// steps is how many changes there are.
	steps int
	// pairs is the size of all labels and annotations, and longest that of the longest with each key.
	pairs   int
	longest map[string]int
	// namespace, image and version are the longest that kustomizations write, of which a field holds
	// one. added is the size of what they add to names and tags.
	namespace, image, version, added int
	// written is how many fields labels and annotations are written to beside the known ones, and filled
	// how many the rest is. known are those that kustomizations name themselves.
	written, filled int
	known           map[types.FieldSpec]bool
	// generated is the size of what kustomizations write to all that they generate.
	generated int
}

// everywhere counts the fields of a kustomization that change all objects.
//
//nolint:staticcheck // deprecated fields are read as any other
func (w *work) everywhere(k *types.Kustomization) {
	e := &w.everything
	e.labels(k.CommonLabels)
	e.labels(k.CommonAnnotations)
	for _, l := range k.Labels {
		e.labels(l.Pairs)
		for _, field := range l.FieldSpecs {
			if !e.known[field] {
				e.known[field] = true
				e.written++
				w.fields++
			}
		}
	}
	for _, image := range append(k.Images[:len(k.Images):len(k.Images)], k.ImageTags...) {
		e.steps++
		e.image = max(e.image, len(image.NewName))
		e.version = max(e.version, len(image.NewTag)+len(image.Digest))
		e.added += len(image.TagSuffix)
	}
	if k.NamePrefix != "" || k.NameSuffix != "" {
		w.affixed = true
		w.affixes++
		e.steps++
		e.added += len(k.NamePrefix) + len(k.NameSuffix)
	}
	if k.Namespace != "" {
		e.steps++
		e.namespace = max(e.namespace, len(k.Namespace))
	}
	e.steps += len(k.Replicas) + len(k.Vars)
	for _, v := range k.Vars {
		w.vars[v.Name] = subject{v.ObjRef.Kind, v.ObjRef.Name}
	}
	if o := k.GeneratorOptions; o != nil {
		e.generated += (sizeOfPairs(o.Labels) + sizeOfPairs(o.Annotations)) * (len(k.ConfigMapGenerator) + len(k.SecretGenerator))
	}
}

// labels counts labels or annotations. An object holds one of a key, whoever wrote it last.
func (e *everything) labels(pairs map[string]string) {
	if len(pairs) == 0 {
		return
	}
	e.steps++
	e.pairs += sizeOfPairs(pairs)
	for key, value := range pairs {
		e.longest[key] = max(e.longest[key], len(value)+bytesOfValue)
	}
}

// grows returns how many bytes all that adds to one object at most.
func (e *everything) grows() float64 {
	pairs := 0
	for key, value := range e.longest {
		pairs += len(key) + value
	}
	return float64(1+e.written)*float64(pairs) + float64(1+e.filled)*float64(e.namespace+e.image+e.version+e.added)
}

func sizeOfPairs(pairs map[string]string) int {
	size := 0
	for key, value := range pairs {
		size += len(key) + len(value) + bytesOfValue
	}
	return size
}
