// Package release keeps Helm releases as they are wanted: it observes what Helm has recorded in a cluster, decides what to do
// about it, and acts, one action at a time.
//
// The releases are real ones, which `helm ls` sees. Helm's own actions run them, over a Kubernetes client of ours that asks the
// API server for as little as possible and ends with its context. Health is never waited for here, only hooks are (C54).
// Nothing is remembered between two calls: the record of what went into a release is a label on it.
package release
