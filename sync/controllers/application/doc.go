// Package application is the Application controller: it selects components by kind, selector
// and annotation, owns them or observes them, knows whether each is there and healthy, and which
// dependencies are, and runs the Pod of the health check (A49-A88).
//
// A pass reads everything from memory: what there is of the kinds that Applications list
// (sync/census), how it is (sync/vitals), and whose it is (sync/membership). ownerReferences
// and marks are written beside the passes (sync/ownership), object by object.
//
// An Application is reconciled when its spec, its deletion or the annotation reconcile-at
// changes; when an object comes, goes or changes that belongs to it, did, or is listed by
// name; when the health of one changes; when a kind that it lists becomes known, unknown or
// forbidden; when a dependency, or a dependency of that, comes or goes; and when the Pod of
// its health check changes. What comes at once is taken together.
//
// It owns the conditions Ready, ComponentsReady, DependenciesReady, Reconciling and Stalled
// of Application.
package application
