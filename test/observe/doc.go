// Package observe waits for objects in a cluster by watching them, so that the demo and the
// benchmarks need not poll.
package observe
