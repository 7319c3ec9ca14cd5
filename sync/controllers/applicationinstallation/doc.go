// Package applicationinstallation installs, upgrades, keeps and uninstalls applications in
// user clusters, driven from the hub's side (K43-K47).
//
// Every cluster has a driver: a controller with a queue and workers of its own over the
// cluster's ApplicationInstallations, so that a dead cluster holds up nobody else. A pass
// never waits: preparing (fetch a chart, build a kustomization) and acting (a Helm action, an
// apply) are jobs beside the workers that wake the installation when they end; health and
// drift arrive as watch events.
//
// An installation is reconciled when its spec or the annotation reconcile-at changes, when its
// definition, or a Secret or a ConfigMap that it refers to changes, when an
// object of it was changed or deleted by others or changes its health, and when its cluster is
// back.
//
// It owns the conditions Ready, Installed, Drifted, Reconciling and Stalled.
package applicationinstallation
