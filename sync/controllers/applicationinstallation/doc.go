// Package applicationinstallation installs, upgrades, maintains and uninstalls applications in user
// clusters, driven from the hub's side.
//
// Every cluster has a driver: a controller with its own queue and workers for the cluster's
// ApplicationInstallations, so that a dead cluster delays no other. A pass never waits: preparing
// (fetching a chart, building a kustomization), for which it has a subscription to the source
// (sync/source/subscription), and acting (a Helm action, an apply) are jobs outside the workers that
// enqueue the installation when they end; health and drift arrive as watch events.
//
// What became of the last install is a phase (tried), by which passes decide what to do next:
//
//	Well     → Failed    an install failed, or was interrupted while it was rendered
//	Failed   → Well      installed, or the record is gone
//	Well     → GivenUp   not healthy in time, and rolled back, or goes back with its data
//	Well     → GivingUp  the rollback failed
//	GivingUp → GivenUp   rolled back
//	GivingUp → Well      it is healthy after all, or something else is installed
//	GivingUp → Failed    there is no release any more, or the install of something else failed
//	Failed   → GivenUp   an upgrade failed, and goes back with its data
//	GivenUp  → Failed    the install of something else, or another try on request, begins
//	GivenUp  → Well      the release went back with an ApplicationRollback, or its record is gone
//
// An installation is reconciled when its spec or the annotation reconcile-at changes; when its
// definition, or a Secret or ConfigMap that it refers to, changes; when one of its objects is
// changed or deleted by others, or changes its health; and when its cluster is back.
//
// It owns the conditions Ready, Installed, Drifted, Reconciling and Stalled.
package applicationinstallation
