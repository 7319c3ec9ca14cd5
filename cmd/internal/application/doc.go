// Package application writes the Applications that this program generates: as manifests, and into a
// cluster.
package application
