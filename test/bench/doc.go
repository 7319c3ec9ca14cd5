// Package bench measures Waybill's performance targets, with real control planes and its real
// programs, and prints a table with one line per figure: name, value, unit, limit, and `ok` or
// `FAIL`. It fails if any line does.
//
//	make bench                    every row
//	BENCH=gitsync-1000 make bench those whose name matches
//	BENCH_RUNS=1 make bench       one run of each instead of the median of five
//
// Every row starts a fresh Waybill process, so that the peak memory is that of the row, and most
// start their own clusters. Rows that need 10,000 objects share one cluster with them, and rows that
// need ten user clusters share those: these rows are groups of their own. If a limit is a multiple
// of a floor, the floor is measured in the same run, on the same clusters, by a bare program that
// sends what any program would have to send, over 20 connections.
//
// A limit that is no multiple of a floor is an absolute time on an otherwise idle machine of two
// cores. All rows together take about an hour there.
//
// To add a row, write a function that takes a *testing.B and *results, and list it in groups.
package bench
