package health

import (
	"fmt"
	"sync"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/ext"
)

// checkEvery is the number of loop steps after which the time limit of an evaluation is checked.
const checkEvery = 100

// environment is the CEL environment of expressions: the one that admission accepts.
var environment = sync.OnceValues(func() (*celgo.Env, error) { return newEnvironment(seen...) })

func newEnvironment(variables ...string) (*celgo.Env, error) {
	options := []celgo.EnvOption{
		celgo.HomogeneousAggregateLiterals(),
		celgo.EagerlyValidateDeclarations(true),
		celgo.DefaultUTCTimeZone(true),
		celgo.CrossTypeNumericComparisons(true),
		celgo.OptionalTypes(),
		ext.Strings(), ext.Sets(), ext.Encoders(),
	}
	for _, name := range variables {
		options = append(options, celgo.Variable(name, celgo.ObjectType("google.protobuf.Struct")))
	}
	return celgo.NewEnv(options...)
}

// program is a compiled expression.
type program = celgo.Program

// compile compiles an expression whose result is a boolean, and whose evaluation may cost that much.
func compile(text string, most uint64) (celgo.Program, error) {
	env, err := environment()
	if err != nil {
		return nil, fmt.Errorf("make CEL environment: %w", err)
	}
	return compileIn(env, text, most)
}

func compileIn(env *celgo.Env, text string, most uint64) (celgo.Program, error) {
	checked, issues := env.Compile(text)
	if issues.Err() != nil {
		return nil, fmt.Errorf("compile expression %q: %w", text, issues.Err())
	}
	if !checked.OutputType().IsExactType(celgo.BoolType) {
		return nil, fmt.Errorf("compile expression %q: it results in %s, and not in a boolean", text, checked.OutputType())
	}
	guarded, err := guard(env)
	if err != nil {
		return nil, err
	}
	// Nothing is optimized: that would take calls away from the guard.
	program, err := env.Program(checked,
		celgo.CustomDecorator(guarded),
		celgo.InterruptCheckFrequency(checkEvery),
		celgo.CostTracking(resultCost{}),
		celgo.CostLimit(most),
	)
	if err != nil {
		return nil, fmt.Errorf("compile expression %q: %w", text, err)
	}
	return program, nil
}

// resultCost makes functions that build strings and lists, such as replace and split, cost as much as
// the length of the result.
type resultCost struct{}

// CallCost returns the cost of a call whose result is a string or a list; nil leaves the cost to CEL.
func (resultCost) CallCost(_, _ string, _ []ref.Val, result ref.Val) *uint64 {
	switch result.(type) {
	case types.String, types.Bytes, traits.Lister:
		cost := sizeOf(result) + 1
		return &cost
	}
	return nil
}
