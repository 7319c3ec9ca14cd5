// Package registration registers the webhooks with API servers: where they are, and which authority
// to trust. It reports whether that has taken effect.
//
// Every process keeps a serving certificate from the shared authority (package certificate) and
// watches the Secret that holds that authority and the two webhook configurations. The holder of a
// Lease fills the configurations, and writes only if they differ: with Hooks, which never
// change, and Injections, which follow the Applications of the cluster. A process is ready when an
// API server that reads the configurations would reach and trust it, whichever version filled them. In
// an upgrade, the old version fills them as long as one of its processes runs, since it does not answer
// at the paths of hooks that the new one adds.
// When it ends, it first releases the Lease and goes on answering until API servers no longer call
// it.
package registration
