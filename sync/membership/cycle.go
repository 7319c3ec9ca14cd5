package membership

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Cycle returns the names of a shortest cycle of dependencies through the Application of that key
// if it had the given dependencies; the first name is also the last. It returns nil if there is no
// cycle. Applications that do not exist have no dependencies.
func (x *Index) Cycle(key types.NamespacedName, dependencies []string) []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	from := map[string]string{} // from a dependency to the Application that has it
	queue := []string{key.Name}
	for len(queue) > 0 {
		name := queue[0]
		queue = queue[1:]
		next := dependencies
		if name != key.Name {
			a := x.apps[types.NamespacedName{Namespace: key.Namespace, Name: name}]
			if a == nil {
				continue
			}
			next = a.Dependencies
		}
		for _, dependency := range next {
			if dependency == key.Name {
				return trace(from, key.Name, name)
			}
			if _, seen := from[dependency]; !seen {
				from[dependency] = name
				queue = append(queue, dependency)
			}
		}
	}
	return nil
}

// trace follows from backwards, from the last Application of a cycle to its first.
func trace(from map[string]string, first, last string) []string {
	cycle := []string{first}
	for name := last; name != first; name = from[name] {
		cycle = append(cycle, name)
	}
	cycle = append(cycle, first)
	slices.Reverse(cycle)
	return cycle
}
