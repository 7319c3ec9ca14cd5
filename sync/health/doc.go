// Package health reads how an object is doing from the object itself, in the
// words of kstatus, and sums many of them up into something that fits a status
// and a condition message. It is pure: it asks no cluster.
package health
