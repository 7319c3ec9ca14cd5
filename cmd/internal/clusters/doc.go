// Package clusters implements the command `cluster`, which adds and removes clusters.
//
// It is the only command that writes to a cluster with the credentials of its administrator. Those are used
// while it runs, and are neither stored nor sent to the hub: what the hub gets is the token of a
// ServiceAccount that the command makes.
package clusters
