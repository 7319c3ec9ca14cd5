package kustomize

import "slices"

// maxPairs is how many pairs of paths are compared. What is beyond is taken for what is looked for.
const maxPairs = 20_000_000

// parsesPieces reports whether a replacement writes into the YAML in a text that was put together by
// a delimiter, or taken from another text by one: what that holds was not looked at. It relies on the
// links that chained makes.
func (r *replacements) parsesPieces() bool {
	if r.compared == len(r.all) {
		return false
	}
	r.compared = len(r.all)
	r.spreadPieces()
	for _, one := range r.all {
		if !one.pieced {
			continue
		}
		for ; one.compared < len(r.all); one.compared++ {
			if r.writesInto(r.all[one.compared], one) {
				return true
			}
		}
	}
	return false
}

// hasDelimiter reports whether a replacement splits what it reads, or what it writes to.
func (r *replacement) hasDelimiter() bool {
	return r.delimiter != "" || slices.ContainsFunc(r.targets, func(t writing) bool { return t.delimiter != "" })
}

// spreadPieces notes which replacements may write pieces: those with a delimiter, and all that read
// what these write.
func (r *replacements) spreadPieces() {
	seen := make(map[*replacement]bool)
	for pending := slices.Clone(r.all); len(pending) > 0; pending = pending[1:] {
		one := pending[0]
		if one.pieced = one.pieced || one.hasDelimiter(); !one.pieced || seen[one] {
			continue
		}
		seen[one] = true
		for _, fed := range one.feeds {
			fed.pieced = true
			pending = append(pending, fed)
		}
	}
}

// writesInto reports whether one may write to something in what other writes.
func (r *replacements) writesInto(one, other *replacement) bool {
	for _, inner := range one.targets {
		for _, outer := range other.targets {
			r.compares += 1 + len(inner.paths)*len(outer.paths)
			if r.compares > maxPairs {
				return true
			}
			if r.mayBe(inner.to, subject{outer.to.Kind, outer.to.Name}) && leadsInto(inner.paths, outer.paths) {
				return true
			}
		}
	}
	return false
}

// leadsInto reports whether one of the inner paths leads into a value that one of the outer leads to.
func leadsInto(inner, outer [][]string) bool {
	for _, in := range inner {
		for _, out := range outer {
			if len(in) > len(out) && slices.EqualFunc(in[:len(out)], out, mayMeet) {
				return true
			}
		}
	}
	return false
}

// mayMeet reports whether two steps that are written may lead to the same value.
func mayMeet(a, b string) bool { return a == b || selectsItem(a) && selectsItem(b) }

func selectsItem(step string) bool {
	_, _, ok := selected(step)
	return ok || step == "*" || step == "-" || isIndex(step)
}
