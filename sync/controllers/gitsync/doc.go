// Package gitsync pulls manifests from git and delivers them to this cluster, or to every cluster
// that a selector matches.
//
// A pass never waits: it says what it wants to know to a subscription to the repository (sync/source/subscription),
// and what is wanted in each cluster to a delivery (sync/deliver/delivery), which enqueue the GitSync when another
// pass is worth it. Rendering what the mirror has is a job beside the workers, whose end enqueues the GitSync too.
// A pass decides on the basis of the session, which is kept in memory: what the clusters are to have (desired), what
// may be in them (record), and what deliveries have left in each (achieved). After a restart it is rebuilt by one
// check of the repository and one apply of every object. While the repository cannot be read, what was delivered is
// maintained from the mirror of the revision that it came from.
//
// A GitSync is reconciled when its spec or the annotation reconcile-at changes, when its interval
// is over, when others change or delete one of its objects, when the health of an object changes
// and spec.wait is set, when a KubernetesCluster that it selects appears, disappears, becomes
// unreachable or is back, when its Secret changes, and when an ApplicationDefinition arrives in a
// cluster whose admission has refused an ApplicationInstallation. Objects that the account of a
// GitSync may not watch are checked after each check of the repository.
//
// It owns the conditions Ready, Reconciling and Stalled of GitSync.
package gitsync
