// Package tree is the verb `tree`: from what was committed down to the Pods that run for it,
// across clusters, with the health of everything on the way.
package tree
