// Package bench measures Waybill's performance targets, with real control planes and its real
// programs, and prints a table with one line per figure: name, value, unit, limit, and `ok` or
// `FAIL`. It fails if any line does.
//
//	make bench                    every row
//	BENCH=gitsync-1000 make bench those whose name matches
//	BENCH_RUNS=1 make bench       one run of each instead of the median of five
//
// Each row starts its own hub and a fresh Waybill process, so that the peak memory is that of the
// row. Rows that need ten user clusters share them. If a limit is a multiple of a floor, the floor
// is measured in the same run, on the same clusters, by a bare program that server-side-applies the
// same objects over 20 connections.
//
// To add a row, write a function that takes a *testing.B and a *sheet, and list it in rows.
package bench
