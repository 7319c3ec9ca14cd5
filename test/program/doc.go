// Package program builds Waybill's own programs and runs them as children of the demo and
// the benchmarks: the real processes, with the flags that operators use.
package program
