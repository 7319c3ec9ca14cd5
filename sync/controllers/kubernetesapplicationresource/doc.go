// Package kubernetesapplicationresource brings the one object of a
// KubernetesApplicationResource, and the Secrets that it needs, into the user cluster that
// its application is scheduled to, keeps them there, and shows the status of the object on
// the hub.
//
// A pass never waits: it says what is wanted in the cluster to a delivery (sync/deliver/delivery), which has
// that done beside the workers, and enqueues the resource when a job has ended, when others have changed
// something, and when something that was missing is there. The status of the object arrives as a watch
// event, too.
//
// A resource is reconciled when its spec, its owner or the annotations adopt or reconcile-at
// change, when others change its object or a copy of a Secret, when the status of the object
// changes, when a Secret that it names changes, when its KubernetesCluster changes, is lost or is
// back, and, while it is being deleted, when its application changes.
//
// It owns the conditions Ready, Submitted, RemoteStatusTooLarge, Reconciling and Stalled.
package kubernetesapplicationresource
