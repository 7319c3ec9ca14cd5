// Package cli holds what every verb of the program waybill shares: where it reads and
// writes, which cluster it talks to, and how it ends.
package cli
