// Package disk divides the space that sources may take.
package disk

import (
	"waybill.dev/waybill/sync/source/chart"
	"waybill.dev/waybill/sync/source/git"
)

// Divide divides a folder of a size in bytes: charts may take a quarter and no more than by default, and git mirrors what they
// leave, with an eighth to spare for what is counted late.
func Divide(bytes int64) (git.Limits, chart.Limits) {
	charts := chart.DefaultLimits()
	charts.DiskBytes = min(charts.DiskBytes, bytes/4)
	return git.Limits{StoreBytes: bytes - bytes/8 - charts.DiskBytes}, charts
}
