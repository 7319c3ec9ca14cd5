// Package fleet gives access to the hub and its user clusters from a terminal: to the hub by a
// kubeconfig, to the others by the Secrets that its KubernetesClusters name.
package fleet
