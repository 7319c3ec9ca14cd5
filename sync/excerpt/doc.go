// Package excerpt shortens texts from elsewhere that are too long for a status, a condition or an
// event, and makes those of several lines one.
package excerpt
