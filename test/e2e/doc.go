// Package e2e tests the programs as they are run: real processes, real clusters, and a kill
// at the worst of times.
package e2e
