// Package installation computes what an ApplicationInstallation or a GitSync results in: the same
// sources, values and objects as in waybill-sync, from files and from clusters, without writing
// anything.
package installation
