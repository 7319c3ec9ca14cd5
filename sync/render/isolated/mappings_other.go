//go:build !linux || race

package isolated

// limitMappings does nothing: limitMemory alone ends what takes too much memory. The race detector maps
// more than the program that it watches.
func limitMappings(int64) {}
