// Package plain renders a directory of Kubernetes manifests: every YAML and JSON file below it, as
// kubectl apply --recursive would read them, with the place of each object, so that faults can be
// found.
//
// It is pure: the result depends on the files and the options only. One bad document does not keep
// the others from being rendered; it becomes a Problem.
package plain
