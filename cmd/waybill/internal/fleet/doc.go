// Package fleet is the hub and its user clusters, as somebody at a terminal reaches them:
// the hub by a kubeconfig, the others by the Secrets that its KubernetesClusters name.
package fleet
