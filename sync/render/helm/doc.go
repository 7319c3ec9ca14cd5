// Package helm makes manifests of a chart and its values, as Helm does, without a cluster. It is pure: nothing is fetched and
// nothing is written, and templates that look things up in a cluster find nothing.
//
// What installing a release shares with rendering one lives here too: merging values, checking them against a chart's schema,
// and stamping the marks of an owner on what was rendered.
package helm
