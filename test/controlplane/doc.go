// Package controlplane pins the Kubernetes and etcd versions that tests, the
// demo and the benchmarks run against. It has no code of its own: test/env
// builds the commands that it names below.
package controlplane
