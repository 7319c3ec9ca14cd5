// Package yamlvalue converts parsed YAML to the values that unstructured objects consist of (maps
// with string keys, slices, strings, int64, float64, bool and nil), as kubectl and the API server
// understand it: YAML 1.1, by way of JSON.
//
// It converts directly. The usual way, which encodes to JSON and decodes again, takes several times
// as long and loses the lines.
package yamlvalue
