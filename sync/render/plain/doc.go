// Package plain renders a directory of Kubernetes manifests: every YAML and
// JSON file below it, as kubectl apply --recursive would read them, and with
// the place of each object, so that what is wrong can be found (P12).
//
// It is pure: what it returns depends on the files and the options alone. One
// bad document does not keep the others from being rendered; it becomes a
// Problem.
package plain
