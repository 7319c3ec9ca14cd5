// Package excerpt shortens texts from elsewhere that are too long for a status, a condition or an
// event.
package excerpt
