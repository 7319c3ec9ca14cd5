// Package kustomize builds a kustomization (C25) from a file system that holds
// the whole repository, so that it may use bases beside it.
//
// Kustomize can reach out: it clones repositories, fetches URLs, runs plugins
// and Helm. None of that happens here. Every file that it reads passes through
// a read-only view of the repository, which refuses a kustomization that asks
// for more, and one that reads without end. What is refused, or does not build,
// becomes a Problem.
package kustomize
