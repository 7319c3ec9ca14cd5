// Package application writes Applications that this program made: as manifests, and into a
// cluster.
package application
