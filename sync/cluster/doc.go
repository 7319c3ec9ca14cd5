// Package cluster connects the hub with its user clusters. A kubeconfig becomes a Cluster:
// clients, mapper and discovery that are built once per kubeconfig and user, over one set of
// connections behind one breaker. The Registry engages clusters in the background and keeps
// watch over them, so that a cluster that is dead, or hangs, costs nobody else anything:
// nothing in this package makes a worker wait for a cluster that does not answer.
package cluster
