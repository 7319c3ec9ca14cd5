// Package inventory keeps the list of what was delivered: in the status of its
// owner while it is small, in Secrets beside the owner when it is large.
// It writes no status itself.
package inventory
