package chart

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// readYAML reads a YAML index that has every chart, and every version of a chart, on lines of its
// own.
//
// It cuts by indentation and decodes each piece alone. A cut in the wrong place, in the middle of a
// quoted text or of a flow collection, leaves pieces that are no YAML; so does a reference from one
// piece to another. If all pieces are YAML, together they are the document.
func readYAML(doc io.Reader, b *indexBuilder) error {
	y := &yamlIndex{builder: b}
	lines := bufio.NewScanner(doc)
	lines.Buffer(nil, int(b.limits.IndexEntryBytes))
	for lines.Scan() {
		if err := y.line(lines.Bytes()); err != nil {
			return err
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return b.errPiece()
	case err != nil:
		return err
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
		return y.unusual(errors.New("it is no key"))
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
	return y.unusual(errors.New("it is no chart"))
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
