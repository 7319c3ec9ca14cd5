// Package census knows which objects there are of the kinds that somebody asks for, whatever
// the kind, by one metadata-only watch per kind. It keeps a few words of each object and never
// the object. A kind that arrives later, vanishes, or may not be watched is noticed and told.
package census
