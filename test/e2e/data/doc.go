// Package data has the end-to-end tests of snapshots, clones and rollbacks: a real database in real
// containers, on volumes of a CSI driver. `make e2e` runs them.
package data
