// Package installation works out what an ApplicationInstallation, or a GitSync, comes to: the
// same sources, values and objects as waybill-sync, from files and from clusters, without
// writing anything.
package installation
