package observe

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Condition returns status, reason and message of a condition; all are empty if the object has no
// such condition.
func Condition(o *Object, kind string) (status, reason, message string) {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions") // a list of another shape holds no condition
	for _, item := range list {
		c, ok := item.(map[string]any)
		if ok && c["type"] == kind {
			status, _ = c["status"].(string)
			reason, _ = c["reason"].(string)
			message, _ = c["message"].(string)
			return status, reason, message
		}
	}
	return "", "", ""
}

// Ready matches an object whose condition Ready is True for its current generation.
func Ready(o *Object) bool {
	status, _, _ := Condition(o, "Ready")
	observed, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
	return status == "True" && observed == o.GetGeneration()
}

// Has matches an object that has the string value at a path.
func Has(value string, path ...string) Match {
	return func(o *Object) bool {
		got, _, _ := unstructured.NestedString(o.Object, path...) // a value of another type does not match
		return got == value
	}
}

// Both matches objects that a and b match.
func Both(a, b Match) Match {
	return func(o *Object) bool { return a(o) && b(o) }
}
