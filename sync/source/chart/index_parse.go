package chart

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

type indexDocument struct {
	APIVersion string                   `json:"apiVersion" yaml:"apiVersion"`
	Entries    map[string][]*indexEntry `json:"entries" yaml:"entries"`
}

type indexEntry struct {
	Version string   `json:"version" yaml:"version"`
	URLs    []string `json:"urls" yaml:"urls"`
	Digest  string   `json:"digest" yaml:"digest"`
}

// parseIndex reads an index, JSON or YAML, piece by piece: a decoded document takes many times its
// size, of which we need little, and anybody may have written it. Only an index that is written
// otherwise than Helm and the known servers do is decoded as a whole, and then it must be small.
func parseIndex(doc io.ReadSeeker, limits Limits) (*index, error) {
	read, err := readerOf(doc)
	if err != nil {
		return nil, err
	}
	b := newIndexBuilder(limits)
	err = read(doc, b)
	var unusual *unusualIndex
	if errors.As(err, &unusual) {
		b = newIndexBuilder(limits)
		err = readWhole(doc, b, unusual.err)
	}
	switch {
	case isOurs(err):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: parse repository index: %w", ErrInvalidChart, err)
	case !b.isIndex():
		return nil, errNoIndex
	}
	return b.index, nil
}

var errNoIndex = fmt.Errorf("%w: answer is no repository index: it has neither apiVersion nor entries", ErrInvalidChart)

// unusualIndex says that a document cannot be read piece by piece, which need not mean that it is
// wrong.
type unusualIndex struct{ err error }

func (u *unusualIndex) Error() string { return u.err.Error() }

// readerOf tells JSON from YAML.
func readerOf(doc io.ReadSeeker) (func(io.Reader, *indexBuilder) error, error) {
	start := make([]byte, 512)
	n, err := io.ReadFull(doc, start)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("read repository index: %w", err)
	}
	if _, err := doc.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read repository index: %w", err)
	}
	if bytes.HasPrefix(bytes.TrimSpace(start[:n]), []byte("{")) {
		return readJSON, nil
	}
	return readYAML, nil
}

// indexBuilder collects an index within the limits.
type indexBuilder struct {
	limits     Limits
	index      *index
	apiVersion string
	hasEntries bool
	versions   int64
}

func newIndexBuilder(limits Limits) *indexBuilder {
	return &indexBuilder{limits: limits, index: &index{charts: map[string][]release{}}}
}

func (b *indexBuilder) isIndex() bool { return b.apiVersion != "" || b.hasEntries }

// add adds versions of a chart. Those without a version or an address are useless and left out.
func (b *indexBuilder) add(chart string, entries ...*indexEntry) error {
	const perRelease = 64
	if b.versions += int64(len(entries)); b.versions > b.limits.IndexVersions {
		return errTooLarge("number of versions in the repository index", "IndexVersions", b.limits.IndexVersions)
	}
	for _, e := range entries {
		if e == nil || e.Version == "" || len(e.URLs) == 0 || e.URLs[0] == "" {
			continue
		}
		r := release{version: e.Version, url: e.URLs[0], digest: strings.TrimPrefix(e.Digest, "sha256:")}
		b.index.cost += int64(perRelease + len(r.version) + len(r.url) + len(r.digest))
		b.index.charts[chart] = append(b.index.charts[chart], r)
	}
	return nil
}

// errPiece says that one piece of the document is too large to be decoded.
func (b *indexBuilder) errPiece() error {
	return errTooLarge("one entry of the repository index", "IndexEntryBytes", b.limits.IndexEntryBytes)
}

// readWhole decodes a small document at once. why is the error if it is not small.
func readWhole(doc io.ReadSeeker, b *indexBuilder, why error) error {
	size, err := doc.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if size > b.limits.IndexEntryBytes {
		return why
	}
	if _, err := doc.Seek(0, io.SeekStart); err != nil {
		return err
	}
	data, err := io.ReadAll(doc)
	if err != nil {
		return err
	}
	var parsed indexDocument
	if err := yaml.Unmarshal(data, &parsed); err != nil {
		return err
	}
	b.apiVersion, b.hasEntries = parsed.APIVersion, len(parsed.Entries) > 0
	for chart, entries := range parsed.Entries {
		if err := b.add(chart, entries...); err != nil {
			return err
		}
	}
	return nil
}

// readJSON reads a JSON index, one version of a chart after the other.
func readJSON(doc io.Reader, b *indexBuilder) error {
	pieces := &pieceReader{r: doc, left: b.limits.IndexEntryBytes, builder: b}
	j := &jsonIndex{builder: b, pieces: pieces, Decoder: json.NewDecoder(pieces)}
	err := j.object(j.topLevel)
	if err == nil {
		if _, err = j.Token(); errors.Is(err, io.EOF) {
			return nil
		}
		err = &unusualIndex{errors.New("something follows the JSON document")}
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &unusualIndex{err} // YAML may begin with a brace, too
	}
	return err
}

// jsonIndex decodes an index token by token.
type jsonIndex struct {
	*json.Decoder
	builder *indexBuilder
	pieces  *pieceReader
}

func (j *jsonIndex) topLevel(key string) error {
	switch key {
	case "apiVersion":
		return j.Decode(&j.builder.apiVersion)
	case "entries":
		j.builder.hasEntries = true
		return j.object(j.chart)
	default:
		var unused json.RawMessage
		return j.Decode(&unused)
	}
}

func (j *jsonIndex) chart(name string) error {
	return j.members('[', func() error {
		var entry *indexEntry
		if err := j.Decode(&entry); err != nil {
			return err
		}
		return j.builder.add(name, entry)
	})
}

// object calls member at the value of every key of an object.
func (j *jsonIndex) object(member func(key string) error) error {
	return j.members('{', func() error {
		key, err := j.Token()
		if err != nil {
			return err
		}
		return member(key.(string)) // the decoder accepts no other key
	})
}

// members calls f at every member of an object or a list, which may be null.
func (j *jsonIndex) members(opening json.Delim, f func() error) error {
	switch begin, err := j.Token(); {
	case err != nil:
		return err
	case begin == nil:
		return nil
	case begin != opening:
		return fmt.Errorf("it has %v where a %v is expected", begin, opening)
	}
	for j.More() {
		j.pieces.next()
		if err := f(); err != nil {
			return err
		}
	}
	_, err := j.Token()
	return err
}

// pieceReader fails if more is read between two calls of next than one piece may have.
type pieceReader struct {
	r       io.Reader
	left    int64
	builder *indexBuilder
}

func (p *pieceReader) next() { p.left = p.builder.limits.IndexEntryBytes }

func (p *pieceReader) Read(data []byte) (int, error) {
	const ahead = 4096 // a decoder reads as much as it has room for
	if p.left <= 0 {
		return 0, p.builder.errPiece()
	}
	n, err := p.r.Read(data[:min(len(data), ahead)])
	p.left -= int64(n)
	return n, err
}

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
