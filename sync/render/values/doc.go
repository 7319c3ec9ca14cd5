// Package values computes the values that an installation is rendered with, from all their sources
// except the chart: for waybill-sync, which installs with them, and for the command line, which
// shows the result.
package values
