package apply

import (
	"k8s.io/apimachinery/pkg/types"
)

// verdict is what is to be done about an object that is not as it should be.
type verdict int

const (
	// create: there is none. Applied without force, so that one that appears in
	// this very moment is not taken over.
	create verdict = iota
	// overwrite: it is ours, or may be adopted.
	overwrite
	// leave: it belongs to somebody else.
	leave
	// await: it is being deleted. What is applied now would go with it.
	await
)

// evidence is all that counts for a verdict.
type evidence struct {
	// live is the object in the cluster, nil where there is none.
	live *live
	// mark is our owner annotation.
	mark string
	// ownUID is the uid of the object that we applied last; empty where we did not,
	// or do not remember.
	ownUID types.UID
	// delivered: our inventory names the object.
	delivered bool
	// adopt: the manifest asks for it.
	adopt bool
}

// decide says what is to be done, on what the live object says about its owner
// (C13, C53).
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
	case e.adopt && !e.lost():
		return overwrite
	default:
		return leave
	}
}

// stripped tells whether an object without a mark is ours all the same: we made
// it, and somebody took the mark away.
func (e evidence) stripped() bool {
	if e.ownUID != "" {
		return e.ownUID == e.live.uid
	}
	return e.delivered && e.live.fields != digest{}
}

// lost tells whether the object was ours and somebody else took it over. Two who
// adopt it would take it from one another for ever.
func (e evidence) lost() bool {
	return e.live.owner != "" && e.ownUID != "" && e.ownUID == e.live.uid
}
