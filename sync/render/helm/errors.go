package helm

import "errors"

var (
	// ErrInvalidValues: the values do not fit the schema of the chart. The message says where, one
	// line per value.
	ErrInvalidValues = errors.New("invalid values")
	// ErrRender: the chart cannot be rendered with these values. Retrying does not help until
	// either changes.
	ErrRender = errors.New("chart does not render")
)
