// Package convert implements the command `import`: it converts Applications of the group
// app.k8s.io, which grew out of the same document, to ours.
package convert
