// Package csidriver is a CSI driver for tests. A volume is a folder with real files, a snapshot a copy
// of the folder at one moment, and of several folders for a group snapshot. It runs in the process of
// the test, which can make single calls slow or fail: see Fault.
//
// It has the services that provisioner and snapshotter call and, given a Mounter, the one that a kubelet
// calls; without, nothing is mounted.
package csidriver
