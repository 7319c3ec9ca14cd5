// Package kubernetesapplicationresource brings the one object of a
// KubernetesApplicationResource, and the Secrets that it needs, into the user cluster that
// its application is scheduled to, keeps them there, and shows the status of the object on
// the hub.
//
// A pass never waits: applying and deleting are jobs that run beside the workers, in one lane per
// cluster, and wake the resource when they end. Edits and deletions by others, the status of the
// object, and kinds and namespaces that were missing all arrive as watch events.
//
// A resource is reconciled when its spec, its owner or the annotations adopt or reconcile-at
// change, when others change its object or a copy of a Secret, when the status of the object
// changes, when a Secret that it names changes, when its KubernetesCluster changes, is lost or is
// back, and, while it is being deleted, when its application changes.
//
// It owns the conditions Ready, Submitted, RemoteStatusTooLarge, Reconciling and Stalled.
package kubernetesapplicationresource
