// Package observe waits for objects of a cluster by watching them, so that the demo and
// the benchmarks know when something is there without asking again and again.
package observe
