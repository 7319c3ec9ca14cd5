package health

import (
	"context"
	"fmt"
	"time"

	"github.com/fluxcd/pkg/runtime/cel"
	celgo "github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// evaluationLimit bounds how long one expression may take on one object.
const evaluationLimit = 100 * time.Millisecond

// seen are the parts of an object that expressions see: never its data (C39).
var seen = []string{"metadata", "spec", "status"}

// Expression says in CEL what is healthy, for kinds whose status has words of its own.
type Expression struct {
	current, failed *cel.Expression // failed may be nil
}

// NewExpression compiles what is Current and, unless it is empty, what is Failed. Both see
// metadata, spec and status of an object, and result in a boolean.
func NewExpression(current, failed string) (*Expression, error) {
	compile := func(text string) (*cel.Expression, error) {
		return cel.NewExpression(text, cel.WithCompile(), cel.WithStructVariables(seen...), cel.WithOutputType(celgo.BoolType))
	}
	e := &Expression{}
	var err error
	if e.current, err = compile(current); err != nil {
		return nil, err
	}
	if failed != "" {
		if e.failed, err = compile(failed); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// Of is the health of a live object by the expression. What is being deleted is Terminating.
// An expression that has no answer, as long as the status lacks what it asks for, leaves the
// object InProgress.
func (e *Expression) Of(object *unstructured.Unstructured) (Status, string) {
	if object.GetDeletionTimestamp() != nil {
		return OfMetadata(true)
	}
	data := make(map[string]any, len(seen))
	for _, part := range seen {
		if data[part] = object.Object[part]; data[part] == nil {
			data[part] = map[string]any{}
		}
	}
	if e.failed != nil {
		if yes, err := evaluate(e.failed, data); err == nil && yes {
			return Failed, "is failed by the Application's healthExpressions"
		}
	}
	switch yes, err := evaluate(e.current, data); {
	case err != nil:
		return InProgress, fmt.Sprintf("healthExpressions have no answer: %s", err)
	case !yes:
		return InProgress, "is not current by the Application's healthExpressions"
	}
	return Current, ""
}

func evaluate(e *cel.Expression, data map[string]any) (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), evaluationLimit)
	defer cancel()
	return e.EvaluateBoolean(ctx, data)
}
