package chart

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// readFlow reads an index in YAML's flow style: between braces and brackets like JSON, but with keys and
// texts that need no quotes, and with comments.
//
// It cuts at the brackets that hold the versions of a chart and decodes each piece alone. As with
// readYAML, a cut in the wrong place leaves pieces that are not YAML.
func readFlow(doc io.Reader, b *indexBuilder) error {
	f := &flowIndex{builder: b, r: bufio.NewReader(doc)}
	if err := skipPreamble(f.r); err != nil {
		return err
	}
	if err := f.object(f.topLevel); err != nil {
		return err
	}
	return f.end()
}

// skipPreamble skips what may stand before the content of a document: a byte order mark, comments,
// directives, and the mark of its beginning.
func skipPreamble(r *bufio.Reader) error {
	for {
		head, err := r.Peek(4)
		var skip int
		switch {
		case len(head) == 0 && errors.Is(err, io.EOF):
			return nil
		case len(head) == 0:
			return err
		case bytes.HasPrefix(head, utf8BOM):
			skip = len(utf8BOM)
		case isBlank(head[0]):
			skip = 1
		case len(head) == 4 && bytes.HasPrefix(head, []byte("---")) && isBlank(head[3]):
			skip = 3
		case head[0] == '#' || head[0] == '%':
			if err := skipLine(r); err != nil {
				return err
			}
		default:
			return nil
		}
		if _, err := r.Discard(skip); err != nil {
			return err
		}
	}
}

// skipLine skips the rest of a line, however long it is.
func skipLine(r *bufio.Reader) error {
	for {
		switch _, err := r.ReadSlice('\n'); {
		case err == nil || errors.Is(err, io.EOF):
			return nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return err
		}
	}
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// flowIndex cuts an index, or a part of one, in flow style into pieces.
type flowIndex struct {
	r       *bufio.Reader
	builder *indexBuilder
	// lines is how many line breaks were read.
	lines int
}

func (f *flowIndex) read() (byte, error) {
	c, err := f.r.ReadByte()
	if errors.Is(err, io.EOF) {
		return 0, f.unusual(io.ErrUnexpectedEOF)
	}
	if c == '\n' {
		f.lines++
	}
	return c, err
}

// peek returns the next byte that is neither blank nor part of a comment, and leaves it unread.
func (f *flowIndex) peek() (byte, error) {
	for {
		c, err := f.read()
		switch {
		case err != nil:
			return 0, err
		case c == '#':
			if err := f.comment(); err != nil {
				return 0, err
			}
		case !isBlank(c):
			return c, f.r.UnreadByte()
		}
	}
}

func (f *flowIndex) comment() error {
	f.lines++
	return skipLine(f.r)
}

func (f *flowIndex) unusual(err error) error {
	return &unusualIndex{fmt.Errorf("in flow style, after %d lines: %w", f.lines, err)}
}

// members calls member at every member of a map or a list.
func (f *flowIndex) members(opening, closing byte, member func() error) error {
	if c, err := f.peek(); err != nil || c != opening {
		return cmp.Or[error](err, f.unusual(fmt.Errorf("it has %q where %q is expected", c, opening)))
	}
	for separator := opening; ; {
		if _, err := f.read(); err != nil { // the bracket or the comma
			return err
		}
		c, err := f.peek()
		if err != nil {
			return err
		}
		if c == closing {
			_, err := f.read()
			return err
		}
		if c == ',' {
			return f.unusual(fmt.Errorf("it has nothing between %q and %q", separator, c))
		}
		if err := member(); err != nil {
			return err
		}
		switch c, err = f.peek(); {
		case err != nil:
			return err
		case c == closing:
			_, err := f.read()
			return err
		case c != ',':
			return f.unusual(fmt.Errorf("it has %q where a comma is expected", c))
		}
		separator = c
	}
}

// object calls member at the value of every key of a map; at that of a key without one, there is none.
func (f *flowIndex) object(member func(key string) error) error {
	return f.members('{', '}', func() error {
		raw, err := f.raw(true)
		if err != nil {
			return err
		}
		var key string
		if err := yaml.Unmarshal(raw, &key); err != nil {
			return f.unusual(err)
		}
		switch c, err := f.peek(); {
		case err != nil:
			return err
		case c != ':':
			return nil
		}
		if _, err := f.read(); err != nil {
			return err
		}
		return member(key)
	})
}

func (f *flowIndex) topLevel(key string) error {
	if key == "entries" {
		return f.entries()
	}
	raw, err := f.raw(false)
	if err != nil || key != "apiVersion" {
		return err
	}
	return f.decode(raw, &f.builder.apiVersion)
}

// entries reads the charts.
func (f *flowIndex) entries() error {
	f.builder.hasEntries = true
	return f.object(f.chart)
}

// chart reads the versions of a chart.
func (f *flowIndex) chart(name string) error {
	c, err := f.peek()
	if err != nil {
		return err
	}
	if c == '[' {
		return f.versions(name)
	}
	raw, err := f.raw(false)
	if err != nil {
		return err
	}
	var entries []*indexEntry
	if err := f.decode(raw, &entries); err != nil {
		return err
	}
	return f.builder.add(name, entries...)
}

// versions reads the list of the versions of a chart, one by one.
func (f *flowIndex) versions(name string) error {
	return f.members('[', ']', func() error {
		raw, err := f.raw(false)
		if err != nil {
			return err
		}
		var entry *indexEntry
		if err := f.decode(raw, &entry); err != nil {
			return err
		}
		return f.builder.add(name, entry)
	})
}

// decode decodes a piece. One that is YAML of another type is wrong however the index is read.
func (f *flowIndex) decode(piece []byte, into any) error {
	err := yaml.Unmarshal(piece, into)
	var mistyped *yaml.TypeError
	if err == nil || errors.As(err, &mistyped) {
		return err
	}
	return f.unusual(err)
}

// end returns an error unless nothing follows but comments and the mark of the end of the document.
func (f *flowIndex) end() error {
	rest := bufio.NewScanner(f.r)
	rest.Buffer(nil, int(f.builder.limits.IndexEntryBytes))
	for rest.Scan() {
		if text := bytes.TrimSpace(rest.Bytes()); !isRemark(text) && string(text) != "..." {
			return f.unusual(errors.New("something follows it"))
		}
	}
	if errors.Is(rest.Err(), bufio.ErrTooLong) {
		return f.builder.errPiece()
	}
	return rest.Err()
}

// raw reads a key or a value, up to the comma, the bracket or, after a key, the colon that ends it,
// which is left unread.
func (f *flowIndex) raw(isKey bool) ([]byte, error) {
	s := flowScan{flowIndex: f, fresh: true, blank: true}
	for {
		next, err := f.r.Peek(2)
		if len(next) > 0 && s.depth == 0 && (strings.IndexByte(",}]", next[0]) >= 0 || isKey && next[0] == ':' && s.separates(next[1:])) {
			return s.piece, nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		c, err := f.read()
		if err != nil {
			return nil, err
		}
		if err := s.take(c); err != nil {
			return nil, err
		}
		if int64(len(s.piece)) > f.builder.limits.IndexEntryBytes {
			return nil, f.builder.errPiece()
		}
	}
}

// flowScan follows the text of one piece.
type flowScan struct {
	*flowIndex
	piece []byte
	depth int
	// fresh says that a text may begin here, and with it a quotation mark; property, that this is a
	// tag, an anchor or the mark of a key, after which one may; quoted, that a quoted text has just
	// ended; blank, that the byte before is a blank.
	fresh, property, quoted, blank bool
}

// take adds a byte to the piece and, if it begins a quoted text or a comment, that.
func (s *flowScan) take(c byte) error {
	switch {
	case s.fresh && (c == '"' || c == '\''):
		s.fresh, s.quoted, s.blank = false, true, false
		return s.quotation(c)
	case c == '#' && s.blank:
		s.piece = append(s.piece, '\n')
		return s.comment()
	}
	s.piece = append(s.piece, c)
	switch c {
	case ' ', '\t', '\n', '\r':
		s.blank, s.fresh, s.property = true, s.fresh || s.property, false
		return nil
	case '{', '[':
		s.depth++
		s.fresh = true
	case '}', ']':
		s.depth--
		s.fresh = false
	case ',':
		s.fresh = true
	case ':':
		next, _ := s.r.Peek(1)
		s.fresh = s.separates(next)
	case '&', '!', '?':
		s.property, s.fresh = s.fresh, false
	default:
		s.fresh = false
	}
	s.quoted, s.blank = false, false
	return nil
}

// separates reports whether a colon stands between a key and its value, by what follows it.
func (s *flowScan) separates(next []byte) bool {
	return s.quoted || len(next) == 0 || isBlank(next[0]) || strings.IndexByte(",[]{}", next[0]) >= 0
}

// quotation adds a quoted text to the piece.
func (s *flowScan) quotation(mark byte) error {
	s.piece = append(s.piece, mark)
	for escaped := false; ; {
		c, err := s.read()
		if err != nil {
			return err
		}
		s.piece = append(s.piece, c)
		if int64(len(s.piece)) > s.builder.limits.IndexEntryBytes {
			return s.builder.errPiece()
		}
		switch {
		case escaped:
			escaped = false
		case c == '\\' && mark == '"':
			escaped = true
		case c == mark && mark == '\'':
			// A mark is written twice in it, which reads like two texts beside each other.
			if next, err := s.r.Peek(1); err == nil && next[0] == mark {
				escaped = true
				continue
			}
			return nil
		case c == mark:
			return nil
		}
	}
}
