// Package volumes pins the versions of the controllers that provision volumes and take snapshots
// beside a control plane for tests. It has no code of its own: test/env builds the commands that it
// names below. Libraries that Waybill uses, too, are pinned to its versions, so that they are compiled once for both.
package volumes
