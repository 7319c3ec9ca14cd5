// Package manifests reads manifests from files, folders and the standard input, as a GitSync
// would read them from a repository, and knows which line a field stands in.
package manifests
