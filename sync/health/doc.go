// Package health derives the health of an object from the object itself, in the terms of kstatus,
// and summarizes the health of many objects for a status and a condition message. It is pure: it
// asks no cluster.
package health
