package health

import (
	"errors"
	"fmt"
	"maps"
	"sync"

	celgo "github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// whole is the CEL environment of conditions, which see an object by the name of self.
var whole = sync.OnceValues(func() (*celgo.Env, error) { return newEnvironment("self") })

// Condition is a condition in CEL on one object, within the limits of an Expression.
type Condition struct {
	program celgo.Program
}

// NewCondition compiles a condition on self.metadata, self.spec and self.status of an object, which must
// result in a boolean.
func NewCondition(text string) (*Condition, error) {
	env, err := whole()
	if err != nil {
		return nil, fmt.Errorf("make CEL environment: %w", err)
	}
	program, err := compileIn(env, text, costLimit)
	if err != nil {
		return nil, err
	}
	return &Condition{program: program}, nil
}

// Of reports whether the condition is true of an object, of whose spec it does not see the hidden fields.
// The error says why that has no answer, without values of the object.
func (c *Condition) Of(object *unstructured.Unstructured, hidden ...string) (bool, error) {
	self := visible(object)
	if spec, ok := self["spec"].(map[string]any); ok && len(hidden) > 0 {
		spec = maps.Clone(spec)
		for _, name := range hidden {
			delete(spec, name)
		}
		self["spec"] = spec
	}
	yes, err := evaluate(c.program, map[string]any{"self": self})
	switch {
	case isCancelled(err):
		return false, errors.New("takes too long to work out")
	case err != nil:
		return false, errors.New("has no answer: the object lacks what it asks for, or it is of another type")
	}
	return yes, nil
}
