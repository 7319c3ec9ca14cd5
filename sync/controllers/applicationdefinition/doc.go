// Package applicationdefinition maintains the catalog: it copies every offered definition, without
// its sources, into the user clusters, and holds a definition that is being deleted
// for as long as it is in use.
//
// A pass never waits for a cluster: each engaged cluster has a lane, a goroutine that watches the
// metadata of the copies there, corrects them, and wakes the definition when it is done. A lane
// whose cluster is lost continues when the cluster is back.
//
// A definition is reconciled when its spec, labels or annotations change, when a lane has looked at
// its copy, when the installations of a KubernetesCluster change, and when a KubernetesCluster is
// created, is deleted or changes its labels.
//
// It owns the conditions Ready, Reconciling and Stalled of ApplicationDefinition.
package applicationdefinition
