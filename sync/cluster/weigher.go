package cluster

import "encoding/binary"

// weigher estimates how much memory what it is shown takes once it is decoded. It is shown one stream
// piece by piece.
type weigher interface {
	// weigh reads p from its beginning: at most up to the end of one document of the stream. It returns
	// how much it read, and whether the document ends there.
	weigh(p []byte) (n int, ended bool)
	// size returns the bytes and the weight of the document so far.
	size() (bytes, weight int64)
	// reset begins another document.
	reset()
}

// What the parts of a JSON document weigh, beside their bytes. Unstructured objects become maps, and
// typed ones become structs, which are larger for whole objects, near the top.
const (
	upperObject = 1 << 10
	upperLevels = 3
	innerObject = 128
	innerList   = 48
	nextValue   = 32
	perByte     = 2 // as received, and decoded
)

// jsonWeigher weighs JSON documents, one after another. Whether they are valid is for others to find
// out.
type jsonWeigher struct {
	bytes, structure int64
	depth            int
	quoted, escaped  bool
}

func (w *jsonWeigher) weigh(p []byte) (int, bool) {
	for i, c := range p {
		switch {
		case w.escaped:
			w.escaped = false
		case w.quoted:
			w.quoted, w.escaped = c != '"', c == '\\'
		default:
			if w.mark(c) {
				w.bytes += int64(i + 1)
				return i + 1, true
			}
		}
	}
	w.bytes += int64(len(p))
	return len(p), false
}

// mark takes note of one character outside of strings. It reports whether the document ends with it.
func (w *jsonWeigher) mark(c byte) (ended bool) {
	switch c {
	case '"':
		w.quoted = true
	case '{':
		if w.depth < upperLevels {
			w.structure += upperObject
		}
		w.structure += innerObject
		w.depth++
	case '[':
		w.structure += innerList
		w.depth++
	case ',':
		w.structure += nextValue
	case '}', ']':
		w.depth--
		return w.depth <= 0
	}
	return false
}

func (w *jsonWeigher) size() (int64, int64) { return w.bytes, perByte*w.bytes + w.structure }

func (w *jsonWeigher) reset() { *w = jsonWeigher{} }

// What protobuf weighs. A small message is what it looks like; in a large one, every other byte may be
// an owner reference.
const (
	protobufPlain    = 64 << 10
	protobufPerByte  = 4
	protobufPerExtra = 80
)

// protobufWeigher weighs protobuf. If it is framed, each document has its length before it.
type protobufWeigher struct {
	framed bool
	bytes  int64
	header [4]byte
}

func (w *protobufWeigher) weigh(p []byte) (int, bool) {
	if !w.framed {
		w.bytes += int64(len(p))
		return len(p), false
	}
	n := 0
	for w.bytes < int64(len(w.header)) && n < len(p) {
		w.header[w.bytes] = p[n]
		w.bytes++
		n++
	}
	if w.bytes < int64(len(w.header)) {
		return n, false
	}
	length := int64(len(w.header)) + int64(binary.BigEndian.Uint32(w.header[:]))
	rest := min(length-w.bytes, int64(len(p)-n))
	w.bytes += rest
	return n + int(rest), w.bytes == length
}

func (w *protobufWeigher) size() (int64, int64) {
	plain := min(w.bytes, protobufPlain)
	return w.bytes, protobufPerByte*plain + protobufPerExtra*(w.bytes-plain)
}

func (w *protobufWeigher) reset() { *w = protobufWeigher{framed: w.framed} }

// textWeigher weighs what is not decoded.
type textWeigher struct{ bytes int64 }

func (w *textWeigher) weigh(p []byte) (int, bool) {
	w.bytes += int64(len(p))
	return len(p), false
}

func (w *textWeigher) size() (int64, int64) { return w.bytes, perByte * w.bytes }

func (w *textWeigher) reset() { w.bytes = 0 }
