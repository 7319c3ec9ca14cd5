// Package address decides which servers sources may be on, so that a user who writes a URL cannot
// reach a service that only this machine can reach.
package address
