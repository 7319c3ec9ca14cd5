// Package tracker tracks the objects of the kinds that its users ask for, of any kind, with one
// metadata-only watch per kind. It keeps a little metadata of each object and never the object. It
// notices and reports when a kind arrives later, vanishes, or may not be watched.
package tracker
