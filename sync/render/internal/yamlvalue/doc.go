// Package yamlvalue makes the values that unstructured objects consist of (maps
// with string keys, slices, strings, int64, float64, bool and nil) from parsed
// YAML, as kubectl and the API server understand it: YAML 1.1, by way of JSON.
//
// It goes directly. The usual way, which encodes to JSON and decodes again,
// takes several times as long and loses the lines.
package yamlvalue
