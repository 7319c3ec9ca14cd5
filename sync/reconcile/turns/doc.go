// Package turns has those wait for each other who use something of which there is not enough for all at
// once, and lets nobody who wants much of it keep the others waiting for all of that.
package turns
