// Package tree implements the command `tree`: it shows everything from what was committed down to
// the Pods that run for it, across clusters, with the health of each object on the way.
package tree
