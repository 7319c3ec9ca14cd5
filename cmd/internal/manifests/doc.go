// Package manifests reads manifests from files, folders and the standard input, as a GitSync would
// read them from a repository, and finds the line of a field.
package manifests
