/*
Package rollback replaces volumes under the names of their claims, and makes objects exactly as they
are defined. Nothing of it is kept in memory: every function looks at the cluster, does what is to be
done next and can be done, and can be called again whatever happened meanwhile.

A claim cannot change its volume, so it is deleted and created again:

	old volume: Retain ─► old claim deleted ─► kept, bound to nothing
	new volume: Retain ─► claim beside deleted ─► reserved for the name ─► claim created, bound

There is no moment at which a volume could be reclaimed.
*/
package rollback
