// Package kustomize builds a kustomization from a file system that holds the whole
// repository, so that it may use bases beside it.
//
// Kustomize can reach out: it clones repositories, fetches URLs, and runs plugins and Helm. None of
// that happens here. It reads every file through a read-only view of the repository, which rejects
// a kustomization that asks for more, and one that reads without end. If a kustomization is
// rejected, or does not build, it becomes a Problem.
package kustomize
