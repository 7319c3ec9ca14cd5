package health

import (
	"fmt"
	"strings"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// effort predicts what one call of a function takes, in steps or bytes, from its arguments. CEL counts
// the cost of a call when that has been made, and cannot interrupt it: of a text of a megabyte, a single
// replace makes a terabyte. Functions that are not listed take as much as their arguments are large.
var effort = map[string]func(args []ref.Val) uint64{
	"replace":         replaceEffort,
	"join":            joinEffort,
	"format":          formatEffort,
	"matches":         productEffort,
	"indexOf":         productEffort,
	"lastIndexOf":     productEffort,
	"sets.contains":   productEffort,
	"sets.equivalent": productEffort,
	"sets.intersects": productEffort,
}

// guard returns a decorator that refuses calls whose effort is above costLimit, before they are made.
func guard(env *celgo.Env) (interpreter.InterpretableDecorator, error) {
	calls := map[string]map[string]functions.FunctionOp{}
	for name := range effort {
		overloads, err := env.Functions()[name].Bindings()
		if err != nil {
			return nil, fmt.Errorf("find function %s: %w", name, err)
		}
		calls[name] = map[string]functions.FunctionOp{}
		for _, o := range overloads {
			calls[name][o.Operator] = variadic(o)
		}
	}
	return func(i interpreter.Interpretable) (interpreter.Interpretable, error) {
		call, ok := i.(interpreter.InterpretableCall)
		if !ok || calls[call.Function()] == nil {
			return i, nil
		}
		name := call.Function()
		run := calls[name][call.OverloadID()]
		if run == nil { // which overload it is shows when it is called
			run = calls[name][name]
		}
		return interpreter.NewCall(call.ID(), name, call.OverloadID(), call.Args(), func(args ...ref.Val) ref.Val {
			if effort[name](args) > costLimit {
				return types.NewErrWithNodeID(call.ID(), "%w", errTooExpensive)
			}
			return run(args...)
		}), nil
	}, nil
}

// errTooExpensive is the error of a call that is not made. Like what CEL returns at its own limit, it cancels
// the evaluation.
var errTooExpensive = interpreter.EvalCancelledError{Message: "operation cancelled: function call too expensive", Cause: interpreter.CostLimitExceeded}

// variadic returns the implementation of an overload, whatever number of arguments it takes.
func variadic(o *functions.Overload) functions.FunctionOp {
	return func(args ...ref.Val) ref.Val {
		switch {
		case len(args) == 1 && o.Unary != nil:
			return o.Unary(args[0])
		case len(args) == 2 && o.Binary != nil:
			return o.Binary(args[0], args[1])
		case o.Function != nil:
			return o.Function(args...)
		}
		return types.NoSuchOverloadErr()
	}
}

// replaceEffort returns the length of the result, whatever number of replacements is asked for.
func replaceEffort(args []ref.Val) uint64 {
	text, before, after := textOf(args, 0), textOf(args, 1), textOf(args, 2)
	return uint64(len(text)) + uint64(strings.Count(text, before))*uint64(len(after))
}

func joinEffort(args []ref.Val) uint64 {
	return sizeOf(args[0]) * uint64(1+len(textOf(args, 1)))
}

// formatEffort is that of writing out each argument, wherever else in the list it is, too.
func formatEffort(args []ref.Val) uint64 {
	return uint64(len(textOf(args, 0))) + written(args[len(args)-1], costLimit)
}

// productEffort is that of comparing each part of the first argument with each of the second.
func productEffort(args []ref.Val) uint64 {
	if len(args) < 2 {
		return 0
	}
	return sizeOf(args[0]) * sizeOf(args[1])
}

// textOf returns an argument that is a string, or else "".
func textOf(args []ref.Val, i int) string {
	if i >= len(args) {
		return ""
	}
	text, _ := args[i].(types.String)
	return string(text)
}

// sizeOf returns the length of a string or a list.
func sizeOf(value ref.Val) uint64 {
	sized, ok := value.(traits.Sizer)
	if !ok {
		return 1
	}
	if text, ok := value.(types.String); ok {
		return uint64(len(text))
	}
	size, ok := sized.Size().(types.Int)
	if !ok || size < 0 {
		return 1
	}
	return uint64(size)
}

// written returns about how many bytes a value takes when it is written out, or something above most.
func written(value ref.Val, most uint64) uint64 {
	const other = 16 // a number, a date, or the quotes and commas around it
	total := other + sizeOf(value)
	each, ok := value.(traits.Iterable)
	if !ok {
		return total
	}
	for it := each.Iterator(); it.HasNext() == types.True && total <= most; {
		key := it.Next()
		total += written(key, most-min(total, most))
		if mapping, ok := value.(traits.Mapper); ok {
			total += written(mapping.Get(key), most-min(total, most))
		}
	}
	return total
}
