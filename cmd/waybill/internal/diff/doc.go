// Package diff is the verb `diff`: what would change in clusters, as their API servers say,
// without changing it.
package diff
