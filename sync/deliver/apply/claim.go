package apply

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// write is a write that is under way on behalf of a holder; ended is closed when it ends.
type write struct {
	holder *holder
	ended  chan struct{}
}

// begin adds a write.
func (o *object) begin(h *holder) {
	o.writes = append(o.writes, write{holder: h, ended: make(chan struct{})})
}

// end removes the write of a holder, which has at most one.
func (o *object) end(h *holder) {
	i := slices.IndexFunc(o.writes, func(w write) bool { return w.holder == h })
	close(o.writes[i].ended)
	o.writes = slices.Delete(o.writes, i, i+1)
}

// begin records that a write is about to start, so that its effects are not reported as drift.
func (k *kind) begin(name types.NamespacedName, h *holder) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.object(name).begin(h)
}

// claim begins a write that creates an object, unless another holder is writing it at this moment,
// or applied it and still holds it: all holders apply under one name, so the API server would not
// stop the second from taking the object from the first. If adopt is set, the latter does not
// count.
func (k *kind) claim(name types.NamespacedName, h *holder, adopt bool) *rivalError {
	k.mu.Lock()
	defer k.mu.Unlock()
	o := k.object(name)
	if i := slices.IndexFunc(o.writes, func(w write) bool { return w.holder != h }); i >= 0 {
		return &rivalError{mark: o.writes[i].holder.mark, ended: o.writes[i].ended}
	}
	if o.record != nil && o.record.holder != h && !adopt {
		k.waitFor(name, o, h)
		return &rivalError{mark: o.record.holder.mark}
	}
	o.begin(h)
	return nil
}

// abort ends a write that was begun and did not take place.
func (k *kind) abort(name types.NamespacedName, h *holder) {
	k.mu.Lock()
	defer k.mu.Unlock()
	o := k.object(name)
	o.end(h)
	o.gone = ""
	k.tidy(name)
}

// rivalError reports that an object which does not exist is another owner's to create.
type rivalError struct {
	// mark is the mark of the other owner.
	mark string
	// ended is closed when the write of the other has ended; nil if none is under way.
	ended <-chan struct{}
}

func (e *rivalError) Error() string { return fmt.Sprintf("it belongs to %q", e.mark) }

// await waits for the write that is under way, if there is one.
func (e *rivalError) await(ctx context.Context) {
	if e.ended == nil {
		return
	}
	select {
	case <-ctx.Done():
	case <-e.ended:
	}
}
