// Package kubernetesapplication schedules KubernetesApplications: it finds a cluster for each,
// once, and creates a KubernetesApplicationResource for each of its templates, which another
// controller brings into that cluster.
//
// A KubernetesApplication is reconciled when its spec or the annotation reconcile-at changes, when
// one of its resources changes (at most five times a second), when a resource that stood in the way
// of a template is gone, and when its cluster is created, deleted, paused, lost or back. While it
// fits nowhere, it is also reconciled when the labels of any cluster of its namespace change, and
// when a kind that it needs appears in one: at once if a CustomResourceDefinition announces it, and
// within two minutes if not. A cluster that does not say what it serves is asked again after half a
// minute. Where several processes serve clusters of its namespace, one of them says why it fits
// nowhere.
//
// It owns the conditions Ready, Scheduled, Submitted, Reconciling and Stalled of
// KubernetesApplication.
package kubernetesapplication
