package helm

import (
	"errors"
	"regexp"
)

var (
	// ErrInvalidValues: the values do not fit the schema of the chart. The message says where, one
	// line per value.
	ErrInvalidValues = errors.New("invalid values")
	// ErrRender: the chart cannot be rendered with these values. Retrying does not help until
	// either changes.
	ErrRender = errors.New("chart does not render")
)

// quoted matches where Helm quotes a text that a chart passes to tpl, which is a value, and may be secret.
var quoted = regexp.MustCompile(`(cannot parse template|error during tpl function execution for) "(?:[^"\\]|\\.)*"`)

// concealed is an error of Helm without the texts that were passed to tpl.
type concealed struct{ err error }

// Error returns the text of the error, without those.
func (c *concealed) Error() string { return quoted.ReplaceAllString(c.err.Error(), "$1 a text") }

// Unwrap returns the error.
func (c *concealed) Unwrap() error { return c.err }
