// Package convert is the verb `import`: Applications of the group app.k8s.io, which grew out
// of the same document, become ours (C1).
package convert
