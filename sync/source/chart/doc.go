// Package chart fetches Helm charts: from HTTP repositories, from OCI registries, and from a directory of a
// repository snapshot. A reference, or a directory, goes in; a parsed chart and the digest of what it was made of come out.
//
// A Cache is shared by everything in a process. What was fetched once with some credentials is served again to whoever shows
// the same credentials, without a request; a repository index is parsed once per content, a chart once per digest. Disk and
// memory are bounded, and so is everything that a repository can send; a limit that is hit is named in the error.
package chart
