package apply

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Digest identifies everything that is in the cluster for an owner: each object, what was wanted of it, and
// when which of its fields were last written in our name. It is empty while that is not known: something
// could not be applied, is not watched, is held, or was edited by others. Stored, it shows the next process
// that nothing has changed meanwhile (Request.Digest). It changes with each write of our fields, also one
// under our name by others, which a watch cannot distinguish from our own. It costs no request.
func (a *Applier) Digest(owner Owner) string {
	a.mu.Lock()
	h := a.holders[owner]
	a.mu.Unlock()
	if h == nil {
		return ""
	}
	var lines []string
	for _, v := range []*view{h.applied.Load(), h.watched.Load()} {
		if v == nil {
			continue
		}
		if !v.settled || len(v.strays) > 0 {
			return ""
		}
		for _, key := range v.objects {
			line := key.kind.line(key, h)
			if line == "" {
				return ""
			}
			lines = append(lines, line)
		}
	}
	return digestOfLines(lines)
}

func digestOfLines(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:])
}

// line describes an object that is as it was applied or, if the watch has not shown that yet, was written;
// it is empty for any other.
func (k *kind) line(key recordKey, h *holder) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	o := k.objects[key.name]
	if o == nil || o.record == nil || o.record.holder != h || !k.covered(key.name.Namespace) {
		return ""
	}
	if r := o.record; !r.isHeld && r.heldBy == "" && (r.awaiting(o.live) || r.matches(o.live)) {
		return r.line(key)
	}
	return ""
}

// line describes an object as it was applied.
func (r *record) line(key recordKey) string {
	id := key.kind.id(key.name).Key()
	return strings.Join([]string{
		id.Group, id.Kind, id.Namespace, id.Name, string(r.uid), hex.EncodeToString(r.desired[:]), r.ignored, hex.EncodeToString(r.stamp[:]),
	}, "\t")
}

// takeOver takes everything for applied if it is as the digest of the request says: the process before has
// applied it, and it has not changed since.
func (r *run) takeOver(ctx context.Context) {
	if r.request.Digest == "" || len(r.holder.records) > 0 || len(r.held) > 0 {
		return
	}
	r.resolveKnown(ctx, usable(r.items))
	if !r.watchesAll(ctx) {
		return
	}
	seen := make([]*record, len(r.items))
	lines := make([]string, len(r.items))
	for i, it := range r.items {
		if seen[i] = it.kind.asSeen(it, r.holder); seen[i] == nil {
			return
		}
		lines[i] = seen[i].line(it.key())
	}
	if v := r.holder.watched.Load(); v != nil {
		for _, key := range v.objects {
			line := key.kind.line(key, r.holder)
			if line == "" {
				return
			}
			lines = append(lines, line)
		}
	}
	if digestOfLines(lines) != r.request.Digest {
		return
	}
	r.unchanged = true
	for i, it := range r.items {
		if it.kind.assume(it.name(), seen[i]) {
			r.holder.records[it.key()] = seen[i]
		} else {
			r.unchanged = false // it is applied as usual
		}
	}
}

// watchesAll reports whether all objects are watched. It begins to, as the delivery does otherwise, which
// says why it cannot.
func (r *run) watchesAll(ctx context.Context) bool {
	wanted := make(scopes)
	for _, it := range r.items {
		if it.undone() || it.kind == nil {
			return false
		}
		wanted.add(it.kind, it.id.Namespace)
	}
	for k, namespaces := range wanted {
		if k.cover(ctx, slices.Sorted(maps.Keys(namespaces))) != nil {
			return false
		}
	}
	return true
}

// asSeen returns the record of an object as a watch shows it; nil if it is not known, or not just the
// holder's.
func (k *kind) asSeen(it *item, h *holder) *record {
	k.mu.Lock()
	defer k.mu.Unlock()
	o := k.objects[it.name()]
	if o == nil || o.live == nil || o.record != nil || !k.covered(it.id.Namespace) {
		return nil
	}
	seen := &record{holder: h, desired: it.desired, ignored: it.ignored.Digest(), uid: o.live.uid, fields: o.live.fields, stamp: o.live.stamp}
	if !seen.matches(o.live) {
		return nil
	}
	return seen
}

// assume makes a record that of its object, unless the object was applied meanwhile, and reports whether
// it does.
func (k *kind) assume(name types.NamespacedName, seen *record) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	o := k.objects[name]
	if o == nil || o.record != nil {
		return false
	}
	o.record = seen
	return true
}
