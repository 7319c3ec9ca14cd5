// Package controlplane pins the versions of Kubernetes, etcd and kwok that tests, the demo and the
// benchmarks run against. It has no code of its own: test/env builds the commands that it names
// below. Libraries that Waybill uses, too, are pinned to Waybill's versions, so that they are
// compiled once for both.
package controlplane
