// Package watch watches objects of any kind without storing them: each object is reduced at once
// and handed on. A watch survives lost connections, and reports kinds that may not be watched or
// are not served.
package watch
