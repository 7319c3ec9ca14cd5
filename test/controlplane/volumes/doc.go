// Package volumes pins the versions of the controllers that provision volumes and take snapshots
// beside a control plane for tests. It has no code of its own: test/env builds the commands that it
// names below.
package volumes
