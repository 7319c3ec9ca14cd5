package dashboard

import (
	"cmp"
	"slices"
	"strings"
)

// finder finds many texts in others, in one pass, however many there are and whatever they have in common (Aho and Corasick).
type finder struct {
	// beginnings of what is looked for; the first is the empty one. next leads from one to those that have a byte more.
	beginnings []beginning
	next       map[step]int32
}

// step is a byte more than a beginning.
type step struct {
	from int32
	char byte
}

// beginning is what one text, or several, begin with.
type beginning struct {
	last   step
	length int32
	// shorter is the longest other beginning that it ends with, and found how long the longest text is that it ends with; 0 for none.
	shorter, found int32
}

// newFinder returns what finds texts.
func newFinder(texts []string) *finder {
	f := &finder{beginnings: make([]beginning, 1), next: map[step]int32{}}
	for _, text := range texts {
		f.add(text)
	}
	f.link()
	return f
}

func (f *finder) add(text string) {
	at := int32(0)
	for i := range len(text) {
		last := step{at, text[i]}
		below, known := f.next[last]
		if !known {
			below = int32(len(f.beginnings))
			f.beginnings = append(f.beginnings, beginning{last: last, length: int32(i + 1)})
			f.next[last] = below
		}
		at = below
	}
	f.beginnings[at].found = int32(len(text))
}

// link finds out what each beginning ends with, the shortest first: longer ones need to know it.
func (f *finder) link() {
	order := make([]int32, len(f.beginnings))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(f.beginnings[a].length, f.beginnings[b].length) })
	for _, i := range order {
		one := &f.beginnings[i]
		if one.length > 1 {
			one.shorter = f.after(f.beginnings[one.last.from].shorter, one.last.char)
		}
		one.found = max(one.found, f.beginnings[one.shorter].found)
	}
}

// after returns the longest beginning that another one with a byte more ends with.
func (f *finder) after(at int32, char byte) int32 {
	for {
		if below, known := f.next[step{at, char}]; known {
			return below
		}
		if at == 0 {
			return 0
		}
		at = f.beginnings[at].shorter
	}
}

// span is a part of a text.
type span struct{ from, to int }

// find returns the parts of a text that are looked for. Those that overlap are one.
func (f *finder) find(text string) []span {
	var spans []span
	at := int32(0)
	for i := range len(text) {
		at = f.after(at, text[i])
		length := int(f.beginnings[at].found)
		if length == 0 {
			continue
		}
		found := span{i + 1 - length, i + 1}
		for n := len(spans); n > 0 && spans[n-1].to > found.from; n = len(spans) {
			found.from = min(found.from, spans[n-1].from)
			spans = spans[:n-1]
		}
		spans = append(spans, found)
	}
	return spans
}

// replace returns a text with another one in place of each part that is looked for.
func (f *finder) replace(text, by string) string {
	spans := f.find(text)
	if len(spans) == 0 {
		return text
	}
	var b strings.Builder
	done := 0
	for _, s := range spans {
		b.WriteString(text[done:s.from])
		b.WriteString(by)
		done = s.to
	}
	b.WriteString(text[done:])
	return b.String()
}
