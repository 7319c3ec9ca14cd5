// Package values works out the values that an installation is rendered with, from everything
// that they come from but the chart: for waybill-sync, which installs with them, and for the
// command line, which shows what they come to.
package values
