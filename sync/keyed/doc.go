// Package keyed has maps that are safe for concurrent use, for what is known of each of many keys: Map, and Recent,
// which is bounded.
package keyed
