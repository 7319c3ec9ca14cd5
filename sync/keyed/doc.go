// Package keyed has a map that is safe for concurrent use, for what is known of each of many keys.
package keyed
