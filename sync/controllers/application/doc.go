// Package application is the Application controller: it selects components by kind, selector and
// annotation, owns or observes them, reports whether each exists and is healthy and which
// dependencies exist, and runs the Pod of the health check.
//
// A pass reads everything from memory: which objects there are of the kinds that Applications list
// (sync/controllers/application/tracker), how healthy they are (sync/controllers/application/healthcache), and which Application they belong to
// (sync/membership). ownerReferences and marks are written outside the passes (sync/controllers/application/ownership),
// object by object.
//
// An Application is reconciled when its spec, its deletion or the annotation reconcile-at changes;
// when an object that belongs or belonged to it, or that it lists by name, is created, deleted or
// changed; when the health of one changes; when a kind that it lists becomes known, unknown or
// forbidden; when a direct or indirect dependency is created or deleted; and when the Pod of its
// health check changes. Changes that come at once are handled together, but the readiness of that
// Pod is mirrored at once.
//
// It owns the conditions Ready, ComponentsReady, DependenciesReady, Orphaning, Reconciling and
// Stalled of Application.
package application
