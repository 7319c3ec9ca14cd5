// Package helm renders a chart and its values to manifests, as Helm does, in the process that calls it.
// Nothing is fetched or written. Lookups of templates find nothing, unless they are given a cluster.
//
// The author of a chart can make rendering take any time and memory, or overflow the stack, which ends
// the process. What was rendered, however, is bounded, and so is what it takes to parse it.
//
// It also holds what installing a release shares with rendering one: merging values, checking them
// against a chart's schema, and stamping the marks of an owner on the rendered objects.
package helm
