// Package applicationinstallation installs, upgrades, maintains and uninstalls applications in user
// clusters, driven from the hub's side.
//
// Every cluster has a driver: a controller with its own queue and workers for the cluster's
// ApplicationInstallations, so that a dead cluster delays no other. A pass never waits: preparing
// (fetching a chart, building a kustomization), for which it has a subscription to the source
// (sync/source/subscription), and acting (a Helm action, an apply) are jobs outside the workers that
// enqueue the installation when they end; health and drift arrive as watch events.
//
// An installation is reconciled when its spec or the annotation reconcile-at changes; when its
// definition, or a Secret or ConfigMap that it refers to, changes; when one of its objects is
// changed or deleted by others, or changes its health; and when its cluster is back.
//
// It owns the conditions Ready, Installed, Drifted, Reconciling and Stalled.
package applicationinstallation
