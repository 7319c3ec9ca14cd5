// Package cli holds what all commands of the program waybill share: its streams, the cluster it
// talks to, and its exit codes.
package cli
