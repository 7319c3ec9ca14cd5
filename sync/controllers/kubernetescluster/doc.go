// Package kubernetescluster keeps the inventory of user clusters: it reads kubeconfigs, engages the
// clusters in the registry, installs the CRDs that user clusters need, and reports what is
// known of each: whether it answers, its version, and a summary of its installations.
//
// A KubernetesCluster is bound to the cluster that it leads to first, and used for no other. That it
// leads to a cluster that another one is bound to is proved before it counts: equal UIDs alone have
// no effect.
//
// A reconciliation never waits for a cluster: contact, CRDs and the clean-up of a deletion happen
// in goroutines of the cluster, which enqueue the KubernetesCluster when they are done.
//
// A KubernetesCluster is reconciled when its spec or the annotation reconcile-at changes, when its
// Secret changes, when its cluster is engaged, lost or back, when an installation in it changes (at
// most twice a second), when what the cluster is provided with changes, and when another KubernetesCluster of the same cluster comes or goes.
//
// With spec.agent, it installs Waybill's own share of the cluster, too. That takes place beside all else: a
// cluster is ready without it.
//
// The package owns the conditions Ready, ClusterReachable, UIDConflict, AgentReady, InitialInstallationsCreated,
// DefinitionsProvided, Reconciling and Stalled of KubernetesCluster. What InitialInstallationsCreated and
// DefinitionsProvided report is the work of package sync/controllers/kubernetescluster/provide, which this controller sets up.
package kubernetescluster
