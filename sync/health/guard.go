package health

import (
	"fmt"
	"math"
	"regexp/syntax"
	"strconv"
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
	"matches":         matchEffort,
	"indexOf":         productEffort,
	"lastIndexOf":     productEffort,
	"sets.contains":   comparisonEffort,
	"sets.equivalent": comparisonEffort,
	"sets.intersects": comparisonEffort,
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

// joinEffort returns the length of the result: a list may name one large text again and again.
func joinEffort(args []ref.Val) uint64 {
	return written(args[0], costLimit) + sizeOf(args[0])*uint64(len(textOf(args, 1)))
}

// formatEffort is that of writing out each argument, wherever else in the list it is, too, and with as
// many digits as the format asks for.
func formatEffort(args []ref.Val) uint64 {
	format := textOf(args, 0)
	return uint64(len(format)) + digits(format) + written(args[len(args)-1], costLimit)
}

// digits returns how many digits after the point a format asks for, in all its clauses together, or
// something above costLimit.
func digits(format string) (total uint64) {
	for rest := format; total <= costLimit; {
		_, after, found := strings.Cut(rest, "%.")
		if !found {
			break
		}
		end := strings.IndexFunc(after, func(r rune) bool { return r < '0' || r > '9' })
		if end < 0 {
			break // it is no clause
		}
		if precision, err := strconv.ParseUint(after[:end], 10, 31); err == nil {
			total += precision
		} else if end > 0 {
			return math.MaxUint32
		}
		rest = after[end:]
	}
	return total
}

// maxPattern is how long a pattern may be: as long as an expression.
const maxPattern = 4096

// matchEffort is that of making an automaton of the pattern, which repetitions make far larger than the
// pattern is, and of running it.
func matchEffort(args []ref.Val) uint64 {
	pattern := textOf(args, 1)
	if len(pattern) > maxPattern {
		return math.MaxUint64
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0 // the call says so
	}
	return productEffort(args) + instructions(parsed)
}

// instructions returns about how many instructions a regular expression is compiled to, each
// repetition written out.
func instructions(re *syntax.Regexp) uint64 {
	total := uint64(1 + len(re.Rune))
	for _, sub := range re.Sub {
		total += instructions(sub)
	}
	if re.Op == syntax.OpRepeat {
		total *= uint64(max(1, re.Min, re.Max))
	}
	return total
}

// comparisonEffort is that of comparing each item of the first argument, byte by byte, with each of the
// second.
func comparisonEffort(args []ref.Val) uint64 {
	const atOnce = 64 // bytes are compared many at a time
	return productEffort(args) + written(args[0], atOnce*costLimit)/atOnce*sizeOf(args[1])
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
