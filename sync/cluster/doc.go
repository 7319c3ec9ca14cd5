// Package cluster connects the hub to its user clusters. A kubeconfig becomes a Cluster: clients,
// mapper and discovery that are built once per kubeconfig and user, over one set of connections
// behind one breaker. The Registry engages and monitors clusters in the background, so that a
// cluster that is dead or hangs does not affect others: nothing in this package makes a worker wait
// for a cluster that does not answer.
package cluster
