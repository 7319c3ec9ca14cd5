// Package healthcache reads the health of objects: one by one as they change, or a kind in pages if
// many are requested at once. An object is reduced to its health as soon as it is read. The result is
// remembered, and the object is read again only when a newer version of it was seen.
package healthcache
