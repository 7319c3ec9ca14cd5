// Package volumes takes snapshots of the volumes of claims: a VolumeSnapshot for each, or one
// VolumeGroupSnapshot for all of a CSI driver. The names of what is created follow from the UID of the
// ApplicationSnapshot, so that what was intended can be recorded before it is done and is found again
// after a restart.
package volumes
