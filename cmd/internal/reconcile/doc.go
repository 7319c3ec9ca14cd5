// Package reconcile implements the command `reconcile`: it requests a reconciliation now, and waits
// until it is done.
package reconcile
