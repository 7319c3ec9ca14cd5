// Package ignore keeps what others set in fields that an owner does not want to decide about, such as
// the replicas of what an autoscaler scales. Rules select objects and name fields of them by JSON
// pointers; what is written over a live object then says nothing else of those fields than the cluster
// does already. It is pure: it asks no cluster.
package ignore
