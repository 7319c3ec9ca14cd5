package apply

import (
	"k8s.io/apimachinery/pkg/types"
)

// verdict is what to do about an object that is not as it should be.
type verdict int

const (
	// create: there is none. It is applied without force, so that one that appears at this very
	// moment is not taken over.
	create verdict = iota
	// overwrite: it is ours, or may be adopted.
	overwrite
	// leave: it belongs to another owner.
	leave
	// await: it is being deleted, and anything applied now would be deleted with it.
	await
)

// evidence is everything that a verdict depends on.
type evidence struct {
	// live is the object in the cluster, nil if there is none.
	live *live
	// mark is the value of our owner annotation.
	mark string
	// ownUID is the uid of the object that we applied last; empty if we did not, or do not
	// remember.
	ownUID types.UID
	// delivered: our inventory names the object.
	delivered bool
	// adopt is what the manifest, or the owner, asks to take over.
	adopt adoption
}

// decide returns what to do, based on what the live object says about its owner.
func decide(e evidence) verdict {
	switch {
	case e.live == nil:
		return create
	case e.live.deleting:
		return await
	case e.live.owner == e.mark:
		return overwrite
	case e.live.owner == "" && e.stripped():
		return overwrite
	case e.adopts():
		return overwrite
	default:
		return leave
	}
}

// stripped reports whether an object without a mark is ours all the same: we applied it, and the
// mark was removed since.
func (e evidence) stripped() bool {
	if e.ownUID != "" {
		return e.ownUID == e.live.uid
	}
	return e.delivered && e.live.fields != digest{}
}

// lost reports whether the object was ours and another owner took it over. It is not adopted then:
// two owners that both adopt it would take it from one another forever.
func (e evidence) lost() bool {
	return e.live.owner != "" && e.ownUID != "" && e.ownUID == e.live.uid
}

// fate is what becomes of an object that is no longer wanted.
type fate int

const (
	// gone: there is none.
	gone fate = iota
	// released: it belongs to another owner or to none, or an annotation keeps it. It stays for good.
	released
	// terminating: it is being deleted already.
	terminating
	// deleted: it is ours.
	deleted
)

// fateOf returns what becomes of an object that is no longer wanted by the owner of a mark. With unkept, the
// prune annotation does not keep it.
func fateOf(l *live, mark string, unkept bool) fate {
	switch {
	case l == nil:
		return gone
	case l.owner != mark, l.keep && !unkept:
		return released
	case l.deleting:
		return terminating
	default:
		return deleted
	}
}
