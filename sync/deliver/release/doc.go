// Package release keeps Helm releases as desired: it observes what Helm has recorded in a cluster,
// decides what to do about it, and acts, one action at a time.
//
// The releases are real Helm releases, which `helm ls` lists. Helm's own actions run them, over a
// Kubernetes client of our own that sends the API server as few requests as possible and ends with
// its context. This package never waits for health, only for hooks. It keeps no state of a
// release between two calls: what went into a release is recorded in a label on its record.
//
// Helm's actions render no chart: the author of a chart can make that take any time and memory. A Renderer
// does, elsewhere if it can, and Helm gets a flat chart of which it makes just what was rendered. The record
// has the chart and the values.
//
// # Records that others may write
//
// Helm keeps its records in Secrets of the target namespace, where every user with ClusterRole edit
// may write; and Helm executes what they say, with the rights of its caller. So a record
// counts only as far as the caller vouches for it (Identity.Known): every Result contains the
// digest of the manifest and the hooks of the revision, and of the one that a rollback would return
// to (seal). The caller keeps them where no user of the namespace can write, along with the digest of
// the bytes of the record, and the store compares them when it reads one: the bytes first, without
// decoding them. What differs in these is decoded within narrow bounds, one record at a time (decodeTheirs),
// because `helm test`, for example, changes a record and not what it executes. If that differs as well, Helm
// sees only an outline, with neither manifest nor hooks, so that no action can use it by mistake:
//
//   - Ensure creates another revision from the chart, with the live objects as its base. Of the fields
//     that the record claims, it removes those that the chart does not want and that Helm has set,
//     according to the managed fields of the object;
//   - Correct and Detect go by the newest record only, and only if it is as noted (ReasonAltered);
//   - Rollback neither returns to it nor uninstalls instead (ReasonAltered);
//   - Uninstall runs no delete hooks, and removes the record.
//
// The objects that it names may still have to be deleted, and so may, for an uninstall, those that
// the caller noted as installed: of these, only objects that carry our own mark are deleted. Labels
// are not vouched for. They decide which action is next, so the worst they can do is to have a
// release upgraded or installed again, to the desired state, or left alone as another owner's. Secrets
// whose labels say what cannot be (possible) are ignored, and returned as such.
//
// After a start, a record that still has the resourceVersion that was noted is as it was noted, and is not
// read (Resume).
//
// Only the newest revision and the one that a rollback would return to are noted. If several failed
// in a row, the earlier ones are not executed either, but they are not reported as altered.
//
// A crash between writing the record and noting it leaves a revision that is not vouched for. If it is
// the one after what was noted, the next Ensure renders the chart once more: a record that is just that
// may be executed, even if others wrote it. The worst that a copy of it can do is that the hooks and the CRDs
// of an upgrade are left out. Otherwise the revision is treated as an altered one: Ensure creates one more,
// which is noted. An Uninstall before that runs no delete hooks. The same goes for a release whose note
// was lost, or was written by a version without digests.
package release
