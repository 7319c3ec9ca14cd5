package health

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/interpreter"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// evaluationLimit bounds how long one expression may take on one object.
	evaluationLimit = 100 * time.Millisecond
	// costLimit bounds the cost of one expression on one object, in CEL's units, of which API
	// servers allow a million: the author of an expression must not be able to delay the objects of
	// others.
	costLimit = 200_000
)

// seen are the parts of an object that expressions see: never its data.
var seen = []string{"metadata", "spec", "status"}

// Expression defines health in CEL, for kinds whose status has terms of its own.
type Expression struct {
	current, failed celgo.Program // failed may be nil
}

// NewExpression compiles the condition for Current and, unless it is empty, the one for Failed.
// Both see metadata, spec and status of an object, and must result in a boolean.
func NewExpression(current, failed string) (*Expression, error) {
	e := &Expression{}
	var err error
	if e.current, err = compile(current, costLimit); err != nil {
		return nil, err
	}
	if failed != "" {
		if e.failed, err = compile(failed, costLimit); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// Of returns the health of a live object according to the expression. An object that is being
// deleted is Terminating. If an expression cannot be evaluated because the status lacks fields that
// it uses, the object is InProgress. Messages never contain values of the object.
func (e *Expression) Of(object *unstructured.Unstructured) (Status, string) {
	if object.GetDeletionTimestamp() != nil {
		return OfMetadata(true)
	}
	data := visible(object)
	if e.failed != nil {
		if yes, err := evaluate(e.failed, data); err == nil && yes {
			return Failed, "is failed by the Application's healthExpressions"
		}
	}
	switch yes, err := evaluate(e.current, data); {
	case isCancelled(err):
		return InProgress, "healthExpressions take too long to work out"
	case err != nil:
		return InProgress, "healthExpressions have no answer: the object lacks what they ask for, or it is of another type"
	case !yes:
		return InProgress, "is not current by the Application's healthExpressions"
	}
	return Current, ""
}

// visible returns the parts of an object that expressions see. The annotation of `kubectl apply` is
// left out, since it holds a copy of all data, and so are the managed fields, which name its keys.
func visible(object *unstructured.Unstructured) map[string]any {
	data := make(map[string]any, len(seen))
	for _, part := range seen {
		if data[part] = object.Object[part]; data[part] == nil {
			data[part] = map[string]any{}
		}
	}
	if metadata, ok := data["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		delete(metadata, "managedFields")
		if annotations, ok := metadata["annotations"].(map[string]any); ok {
			annotations = maps.Clone(annotations)
			delete(annotations, corev1.LastAppliedConfigAnnotation)
			metadata["annotations"] = annotations
		}
		data["metadata"] = metadata
	}
	return data
}

func evaluate(program celgo.Program, data map[string]any) (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), evaluationLimit)
	defer cancel()
	value, _, err := program.ContextEval(ctx, data)
	if err != nil {
		return false, err
	}
	yes, ok := value.Value().(bool)
	if !ok {
		return false, fmt.Errorf("result is a %s, and no boolean", value.Type().TypeName())
	}
	return yes, nil
}

// isCancelled reports whether an evaluation ended at one of the limits.
func isCancelled(err error) bool {
	cancelled := interpreter.EvalCancelledError{}
	return errors.As(err, &cancelled)
}
