package manifest

import (
	"fmt"
	"strings"
)

// Unique splits objects into those that are described once and, for each that several documents
// describe, one Problem that names all places. Of the latter it is unknown which one is meant, so
// none is kept. Both results keep the order of the input. Versions of a kind do not make
// objects different.
func Unique(objects []Object) ([]Object, []Problem) {
	places := make(map[ID][]int, len(objects))
	for i, o := range objects {
		key := o.ID().Key()
		places[key] = append(places[key], i)
	}
	if len(places) == len(objects) {
		return objects, nil
	}
	var kept []Object
	var problems []Problem
	for i, o := range objects {
		switch at := places[o.ID().Key()]; {
		case len(at) == 1:
			kept = append(kept, o)
		case at[0] == i:
			problems = append(problems, duplicate(objects, at))
		}
	}
	return kept, problems
}

// duplicate describes one object that several documents describe.
func duplicate(objects []Object, at []int) Problem {
	first := objects[at[0]]
	others := make([]Object, 0, len(at)-1)
	for _, i := range at[1:] {
		others = append(others, objects[i])
	}
	return Problem{
		ID:      first.ID(),
		File:    first.File,
		Line:    first.Line,
		Reason:  ReasonDuplicateObject,
		Message: fmt.Sprintf("the same object is %s, so none of them is used; keep one", first.Also(others...)),
	}
}

// Also says where else an object is described: in other files or, if all descriptions come from one
// file, by which kustomizations.
func (o Object) Also(others ...Object) string {
	var places []string
	folders, same := []string{o.Kustomization}, o.Kustomization != ""
	for _, other := range others {
		places, folders = append(places, other.Place()), append(folders, other.Kustomization)
		same = same && other.Place() == o.Place() && other.Kustomization != ""
	}
	if same {
		return "built by each of the kustomizations " + strings.Join(folders, ", ")
	}
	return "in " + strings.Join(places, ", ") + " too"
}
