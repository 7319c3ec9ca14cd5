// Package volumes gives a cluster of package env volumes with real files, snapshots of them, and
// commands that run in Pods, all without root: csi-provisioner, csi-snapshotter and snapshot-controller
// beside a CSI driver (package csidriver) and a stand-in for the kubelet (package kubelet).
//
//	c := env.Shared(t, env.Options{Name: "data", Pods: true, CRDs: []string{volumes.CRDs(t)}})
//	v := volumes.On(t, c)
//
// There are two StorageClasses, one for each volumeBindingMode, and a VolumeSnapshotClass and a
// VolumeGroupSnapshotClass which are the defaults of the driver. The default StorageClass stays the
// cluster's own, whose volumes have no snapshots.
package volumes
