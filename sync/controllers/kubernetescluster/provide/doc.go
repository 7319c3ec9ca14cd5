// Package provide creates the installations in user clusters that were not created by users of the
// cluster: those that a KubernetesCluster asks for, in its annotation or a ConfigMap, and those of
// ApplicationDefinitions with default or enforced.
//
// Each engaged cluster has a worker that compares what is wanted with what a watch shows, and
// writes what differs. What it found goes to the controller of KubernetesClusters, which alone writes their
// status: what is to happen only once is recorded there.
//
// A cluster is reconciled again when its KubernetesCluster, a definition, the ConfigMap, or an installation that
// it may have to correct changes, when its cluster is back, and when what failed is due again.
package provide
