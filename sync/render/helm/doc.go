// Package helm renders a chart and its values to manifests, as Helm does, without a cluster. It is
// pure: nothing is fetched or written, and lookups of templates find nothing.
//
// It also holds what installing a release shares with rendering one: merging values, checking them
// against a chart's schema, and stamping the marks of an owner on the rendered objects.
package helm
