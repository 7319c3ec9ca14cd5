// Package node pins the version of the kubelet that end-to-end tests run Pods with: that of the control
// plane. It has no code of its own: test/env builds the command that it names below.
package node
