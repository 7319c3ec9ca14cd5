// Package startup holds the first steps of a program that runs in a cluster: reading its arguments,
// finding its API server, and reporting why it cannot go on.
package startup
