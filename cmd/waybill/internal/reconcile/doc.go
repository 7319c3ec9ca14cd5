// Package reconcile is the verb `reconcile`: ask for a reconciliation now, and wait until it
// is done.
package reconcile
