// Package release keeps Helm releases as they are wanted: it observes what Helm has recorded in a cluster, decides what to do
// about it, and acts, one action at a time.
//
// The releases are real ones, which `helm ls` sees. Helm's own actions run them, over a Kubernetes client of ours that asks the
// API server for as little as possible and ends with its context. Health is never waited for here, only hooks are (C54).
// Nothing is remembered between two calls: the record of what went into a release is a label on it.
//
// # Records that others may write
//
// Helm keeps its records in Secrets of the target namespace, where whoever has ClusterRole edit may write; and Helm executes what
// they say, with the rights of whoever runs it. So a record counts only as far as the caller vouches for it (Identity.Known): with
// every Result comes the digest of the manifest and the hooks of the revision, and of the one that a rollback would go to (seal),
// for the caller to keep where no user of the namespace writes. The store compares when it reads a record. Of one that is not as it
// was noted Helm sees an outline, with neither manifest nor hooks, so that no action can use it by mistake:
//
//   - Ensure makes another revision from the chart, with the live objects alone as its base;
//   - Correct and Detect go by no record but the newest one that was noted (ReasonAltered);
//   - Rollback does not go back to it, nor uninstalls instead (ReasonAltered);
//   - Uninstall runs no delete hooks, and removes the record.
//
// What it names is still taken for a list of what may have to be deleted, and so is, for an uninstall, what the caller noted as
// installed: of that only what carries our own mark goes. Labels are not vouched for. They decide which action is next, and so at worst that a release is upgraded, or
// installed anew, to what is wanted, or left alone as somebody else's.
//
// A crash between the record and the note leaves a revision that nobody vouches for. It is treated alike: the next Ensure makes
// one more revision, which is noted; an Uninstall before that runs no delete hooks. The same goes for a release of which the note
// was lost, or was written by a version without digests.
package release
