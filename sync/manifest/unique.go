package manifest

import (
	"fmt"
	"strings"
)

// Unique splits objects into those that are described once and, for each that several documents
// describe, one Problem that names all places. Of the latter it is unknown which one is meant, so
// none is kept (C59). Both results keep the order of the input. Versions of a kind do not make
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
	others := make([]string, 0, len(at)-1)
	for _, i := range at[1:] {
		others = append(others, objects[i].Place())
	}
	return Problem{
		ID:      first.ID(),
		File:    first.File,
		Line:    first.Line,
		Reason:  ReasonDuplicateObject,
		Message: fmt.Sprintf("the same object is in %s too, so none of them is used; keep one", strings.Join(others, ", ")),
	}
}
