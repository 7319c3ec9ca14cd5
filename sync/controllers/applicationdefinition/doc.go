// Package applicationdefinition maintains the catalog: it copies every offered definition, without
// its sources, into the user clusters, and holds a definition that is being deleted
// for as long as it is in use.
//
// A pass never waits for a cluster: each engaged cluster has a copier, a pool of workers that watches the
// metadata of the copies there, corrects them, and enqueues the definition when something else is known
// of its copy. One whose cluster is lost continues when the cluster is back.
//
// A definition is reconciled when its spec, labels or annotations change, when something else is known of
// one of its copies, when the installations of a KubernetesCluster change, and when a KubernetesCluster is
// created, is deleted or changes its labels.
//
// It owns the conditions Ready, Reconciling and Stalled of ApplicationDefinition.
package applicationdefinition
