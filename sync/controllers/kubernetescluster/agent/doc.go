// Package agent installs Waybill's own share of a user cluster: a Helm release of charts/waybill, which is
// part of this program, without the roles hub and driver. Its version is that of the hub, its image as
// well, so that an upgrade of the hub upgrades every cluster that asks for it.
//
// The release belongs to the cluster, not to one of the KubernetesClusters that lead there: when one takes
// over from another, it takes over the release. ClusterRoles for people are left out until admission has
// answered in the cluster once, since nothing else checks what they write.
package agent
