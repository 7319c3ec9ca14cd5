// Package bench measures what Waybill must reach, against real control planes and its real
// programs, and prints a table with one line per figure: name, value, unit, limit, and `ok`
// or `FAIL`. It fails when a line does.
//
//	make bench                    every row
//	BENCH=gitsync-1000 make bench those whose name matches
//	BENCH_RUNS=1 make bench       one run of each instead of the median of five
//
// A row starts a hub of its own and a fresh process of Waybill's, so that its peak memory is
// its own; ten user clusters are shared by the rows that need that many. Where a limit is a
// multiple of a floor, the floor is measured in the same run, on the same clusters, by a bare
// program that server-side-applies the same objects over 20 connections.
//
// To add a row, write a function that takes a *testing.B and a *sheet, and list it in rows.
package bench
