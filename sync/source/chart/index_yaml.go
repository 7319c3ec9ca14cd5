package chart

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// readYAML reads a YAML index that has every chart, and every version of a chart, on lines of its
// own, or in flow style.
//
// It cuts by indentation and decodes each piece alone. A cut in the wrong place, in the middle of a
// quoted text or of a flow collection, leaves pieces that are no YAML; so does a reference from one
// piece to another. If all pieces are YAML, together they are the document.
func readYAML(doc io.Reader, b *indexBuilder) error {
	y := &yamlIndex{builder: b, r: bufio.NewReader(doc)}
	for {
		flow, err := y.flow()
		if err != nil {
			return err
		}
		if flow {
			continue
		}
		line, err := y.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := y.line(line); err != nil {
			return err
		}
	}
	if err := y.flush(); err != nil {
		return err
	}
	if !b.isIndex() {
		return &unusualIndex{errNoIndex}
	}
	return nil
}

// yamlIndex cuts a document into pieces.
type yamlIndex struct {
	builder *indexBuilder
	r       *bufio.Reader
	number  int // of the current line
	// begun and ended say that the document has.
	begun, ended bool

	// piece is what was not decoded yet, and decode what to do with it; nil if there is no piece.
	piece  []byte
	decode func([]byte) error

	// inEntries says that the lines are those of the entries. nameIndent is the indentation of the
	// names of charts, and itemIndent that of the versions of chart; -1 until there is one.
	inEntries              bool
	nameIndent, itemIndent int
	chart                  string
}

// next returns the next line, without the line break. It is valid until more is read.
func (y *yamlIndex) next() ([]byte, error) {
	var long []byte
	for {
		part, err := y.r.ReadSlice('\n')
		if !errors.Is(err, bufio.ErrBufferFull) {
			if errors.Is(err, io.EOF) && len(long)+len(part) > 0 {
				err = nil
			}
			line := part
			if long != nil {
				line = append(long, part...)
			}
			return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")), err
		}
		if long = append(long, part...); int64(len(long)) > y.builder.limits.IndexEntryBytes {
			return nil, y.builder.errPiece()
		}
	}
}

// What begins a collection in flow style: the entries, or the versions of a chart.
var (
	flowEntries  = regexp.MustCompile(`^["']?entries["']?[ \t]*:[ \t]+\{`)
	flowVersions = regexp.MustCompile(`^( +)([A-Za-z0-9][\w.+-]*|"[^"\\]*"|'[^']*')[ \t]*:[ \t]+\[`)
)

// flow reads a collection in flow style, if one begins on the next line: it may be too large to be read
// as one line.
func (y *yamlIndex) flow() (bool, error) {
	const head = 512
	begin, err := y.r.Peek(head)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	if line, _, _ := bytes.Cut(begin, []byte("\n")); !bytes.ContainsAny(line, "{[") {
		return false, nil // as most lines, for which expressions would cost more than all else
	}
	f := &flowIndex{builder: y.builder, r: y.r}
	length, read, err := y.flowAt(begin, f)
	if err != nil || length == 0 {
		return false, err
	}
	if err := y.flush(); err != nil {
		return false, err
	}
	if _, err := y.r.Discard(length - 1); err != nil { // up to the bracket
		return false, err
	}
	err = read()
	y.number += f.lines
	if err != nil {
		return false, err
	}
	rest, err := y.next()
	y.number++
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return false, err
	case !isRemark(bytes.TrimSpace(rest)):
		return false, y.unusual(errors.New("something follows what is in flow style"))
	}
	return true, nil
}

// flowAt returns how a collection in flow style is read, and how much stands before its content; zero if
// none begins here.
func (y *yamlIndex) flowAt(begin []byte, f *flowIndex) (length int, read func() error, err error) {
	if y.ended {
		return 0, nil, nil
	}
	if length = len(flowEntries.Find(begin)); length > 0 {
		y.begun, y.inEntries = true, false
		return length, f.entries, nil
	}
	found := flowVersions.FindSubmatch(begin)
	if !y.inEntries || found == nil || y.nameIndent >= 0 && len(found[1]) != y.nameIndent {
		return 0, nil, nil
	}
	var name string
	if err := yaml.Unmarshal(found[2], &name); err != nil {
		return 0, nil, y.unusual(err)
	}
	y.nameIndent, y.itemIndent = len(found[1]), -1
	return len(found[0]), func() error { return f.versions(name) }, nil
}

func (y *yamlIndex) line(line []byte) error {
	if y.number++; y.number == 1 {
		line = bytes.TrimPrefix(line, []byte("\ufeff"))
	}
	text := bytes.TrimLeft(line, " ")
	indent := len(line) - len(text)
	switch {
	case isRemark(text): // or part of a text of several lines
		return y.extend(line)
	case y.ended:
		return y.unusual(errors.New("it follows the end of the document"))
	case indent == 0:
		return y.topLevel(line)
	case !y.inEntries:
		return y.extend(line)
	}
	isItem := text[0] == '-' && (len(text) == 1 || text[1] == ' ')
	switch {
	case isItem && y.nameIndent >= 0 && indent >= y.nameIndent && (y.itemIndent < 0 || indent == y.itemIndent):
		return y.item(line, indent)
	case isItem || y.nameIndent >= 0 && indent > y.nameIndent:
		return y.extend(line)
	case y.nameIndent >= 0 && indent < y.nameIndent:
		return y.unusual(errors.New("it is indented less than the chart before"))
	}
	return y.name(line, indent)
}

// isRemark reports whether a line holds nothing, outside of a text of several lines.
func isRemark(text []byte) bool { return len(text) == 0 || text[0] == '#' }

// topLevel begins a key of the document.
func (y *yamlIndex) topLevel(line []byte) error {
	key, value, found := bytes.Cut(line, []byte(":"))
	first, marker := !y.begun, string(bytes.TrimSpace(line))
	if first && strings.HasPrefix(marker, "%YAML ") {
		return nil
	}
	y.begun = true
	switch {
	case first && (marker == "---" || strings.HasPrefix(marker, "--- #")):
		return nil
	case marker == "...":
		y.ended = true
		return nil
	case bytes.HasPrefix(line, []byte("- ")): // the list of a key may stand below it
		return y.extend(line)
	case !found:
		return y.unusual(errors.New("it is not a key"))
	}
	if err := y.flush(); err != nil {
		return err
	}
	y.inEntries = string(bytes.Trim(key, `"' `)) == "entries"
	switch {
	case !y.inEntries:
		y.begin(line, y.decodeKey)
	case !isRemark(bytes.TrimSpace(value)):
		return y.unusual(errors.New("it holds all entries"))
	default:
		y.builder.hasEntries, y.nameIndent = true, -1
	}
	return nil
}

// decodeKey reads a key that is not known to be the entries. It may be, in a way of writing that only
// YAML knows.
func (y *yamlIndex) decodeKey(piece []byte) error {
	var parsed map[string]yaml.Node
	if err := yaml.Unmarshal(piece, &parsed); err != nil {
		return err
	}
	if _, ok := parsed["entries"]; ok {
		return &unusualIndex{errors.New("its key entries is written in an unusual way")}
	}
	if version, ok := parsed["apiVersion"]; ok {
		return version.Decode(&y.builder.apiVersion)
	}
	return nil
}

// name begins a chart, whose versions follow.
func (y *yamlIndex) name(line []byte, indent int) error {
	if err := y.flush(); err != nil {
		return err
	}
	var parsed map[string][]*indexEntry
	if err := yaml.Unmarshal(line, &parsed); err != nil {
		return y.unusual(err)
	}
	y.nameIndent, y.itemIndent = indent, -1
	for name, entries := range parsed {
		y.chart = name
		return y.builder.add(name, entries...)
	}
	return y.unusual(errors.New("it is not a chart"))
}

// item begins a version of the current chart.
func (y *yamlIndex) item(line []byte, indent int) error {
	if err := y.flush(); err != nil {
		return err
	}
	y.itemIndent = indent
	y.begin(line, y.decodeItem)
	return nil
}

func (y *yamlIndex) decodeItem(piece []byte) error {
	var entries []*indexEntry
	if err := yaml.Unmarshal(piece, &entries); err != nil {
		return err
	}
	return y.builder.add(y.chart, entries...)
}

// begin begins a piece; decode is called with all of it.
func (y *yamlIndex) begin(line []byte, decode func([]byte) error) {
	y.decode = decode
	y.piece = append(append(y.piece[:0], line...), '\n')
}

// extend adds a line to the piece.
func (y *yamlIndex) extend(line []byte) error {
	switch {
	case y.decode != nil:
	case isRemark(bytes.TrimLeft(line, " ")):
		return nil
	default:
		return y.unusual(errors.New("it belongs to nothing"))
	}
	y.piece = append(append(y.piece, line...), '\n')
	if int64(len(y.piece)) > y.builder.limits.IndexEntryBytes {
		return y.builder.errPiece()
	}
	return nil
}

// flush decodes the piece.
func (y *yamlIndex) flush() error {
	if y.decode == nil {
		return nil
	}
	err := y.decode(y.piece)
	y.decode = nil
	var mistyped *yaml.TypeError
	if err == nil || isOurs(err) || errors.As(err, &mistyped) {
		return err
	}
	return &unusualIndex{fmt.Errorf("before line %d: %w", y.number, err)}
}

func (y *yamlIndex) unusual(err error) error {
	return &unusualIndex{fmt.Errorf("line %d: %w", y.number, err)}
}
