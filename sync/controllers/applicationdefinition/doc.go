// Package applicationdefinition keeps the catalog: it copies every offered definition,
// without its sources, into the user clusters (C45, K28-K33), and holds a definition that is
// being deleted as long as somebody uses it (C47).
//
// A pass never waits for a cluster: each engaged cluster has a lane, a goroutine that knows
// the copies there by a watch on their metadata and puts them right, and that wakes the
// definition when it is done. A lane whose cluster is lost goes on when that is back.
//
// A definition is reconciled when its spec, labels or annotations change, when a lane has
// looked at its copy, when the installations of a KubernetesCluster change, and when a
// KubernetesCluster comes, goes, or gets other labels.
//
// It owns the conditions Ready, Reconciling and Stalled of ApplicationDefinition.
package applicationdefinition
