// Package diff implements the command `diff`: it shows what would change in clusters, as their API
// servers predict, without changing it.
package diff
