// Package integration holds the tests that need more than one package of ours and
// a real API server.
package integration
