// Package manifest holds the types that fetching, rendering and applying exchange: an object
// together with the file it came from, its identity, and a problem that kept a file or an object
// from being used. It is a leaf: every engine may import it, and it imports none of them.
package manifest
