// Package gitsync pulls manifests from git and delivers them to this cluster, or to every
// cluster that a selector matches (P6, P7, P9).
//
// A pass never waits: looking at the repository, rendering, and delivering to one cluster
// are jobs beside the workers that wake the GitSync when they end. What a pass decides on is
// the session, kept in memory; after a restart it is rebuilt by one look at the repository
// and one apply of every object.
//
// A GitSync is reconciled when its spec or the annotation reconcile-at changes, when its
// interval is over, when an object of it was changed or deleted by others, when the health
// of one changed and spec.wait is set, when a KubernetesCluster that it selects comes, goes,
// is lost or is back, and when its Secret changes. What becomes of objects that the account of a
// GitSync may not watch is looked at after each look at the repository.
//
// It owns the conditions Ready, Reconciling and Stalled of GitSync.
package gitsync
