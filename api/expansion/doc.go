// Package expansion measures what a document becomes in memory before it is decoded: a few lines of
// YAML whose aliases are written out, or a JSON text of empty objects, may take more than there is.
// Code that decodes untrusted input checks it first.
package expansion
