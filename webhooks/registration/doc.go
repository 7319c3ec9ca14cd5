// Package registration tells API servers where the webhooks are and whom to believe, and says
// whether that is so.
//
// Every process keeps a serving certificate from the shared authority (package certificate) and
// watches the Secret that holds it and the two webhook configurations. The one that holds a
// Lease fills the configurations, only where they differ (C51): with Hooks, which never change,
// and Injections, which follow the Applications of the cluster. A process is ready when an API
// server that reads the configurations would reach it and believe it; when it ends it first gives
// the Lease away and goes on answering until nobody asks any more.
package registration
