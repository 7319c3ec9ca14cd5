package validation_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// assertErrors compares type, field and value of the errors: how they are worded is free.
func assertErrors(t *testing.T, want, got field.ErrorList, reason string) {
	t.Helper()
	diff := cmp.Diff(want, got, cmpopts.EquateEmpty(),
		cmpopts.IgnoreFields(field.Error{}, "Detail", "Origin", "CoveredByDeclarative", "FromImperative"))
	assert.Empty(t, diff, "%s\ngot: %v", reason, got)
}

var spec = field.NewPath("spec")

// invalid is an error that does not repeat the value.
func invalid(path *field.Path) *field.Error {
	return field.Invalid(path, field.OmitValueType{}, "")
}

// staysInside walks the path by hand.
func staysInside(p string) bool {
	depth := 0
	for _, part := range strings.Split(p, "/") {
		switch part {
		case "", ".":
		case "..":
			depth--
		default:
			depth++
		}
		if depth < 0 {
			return false
		}
	}
	return !strings.HasPrefix(p, "/")
}
