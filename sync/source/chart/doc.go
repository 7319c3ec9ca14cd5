// Package chart fetches Helm charts from HTTP repositories, from OCI registries, and from a
// directory of a repository snapshot. It turns a reference, or a directory, into a parsed chart and
// the digest of its content.
//
// A Cache is shared by everything in a process. A chart fetched with some credentials is served
// again, without a request, to callers with the same credentials; a repository index is parsed once
// per content, a chart once per digest. Disk and memory use are bounded, and so is everything that
// a repository can send; an error names the limit that was hit.
package chart
