package chart

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"waybill.dev/waybill/sync/source/webpage"
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
// size (BenchmarkParseIndex: 73 MB are allocated for 20,000 versions in 2.8 MB), of which we need little,
// and it is not trusted. Piece by piece takes two and a half times as long, and nothing outlives its piece.
// Only an index that is written otherwise than Helm and the known servers do is decoded as a whole, and then
// it must be small.
func parseIndex(doc io.ReadSeeker, limits Limits) (*index, error) {
	readers, err := readersOf(doc)
	if err != nil {
		return nil, err
	}
	var b *indexBuilder
	var unusual *unusualIndex
	for _, read := range readers {
		b = newIndexBuilder(limits)
		if _, err = doc.Seek(0, io.SeekStart); err == nil {
			err = read(doc, b)
		}
		if !errors.As(err, &unusual) {
			break
		}
	}
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

var errNoIndex = fmt.Errorf("%w: the response is not a repository index: it has neither apiVersion nor entries", ErrInvalidChart)

// unusualIndex says that a document cannot be read piece by piece, which need not mean that it is
// wrong.
type unusualIndex struct{ err error }

func (u *unusualIndex) Error() string { return u.err.Error() }

// readersOf distinguishes JSON and YAML in flow style from YAML in lines, by how the content begins, and
// returns what to read it with: the second one where the first finds it unusual.
func readersOf(doc io.Reader) ([]func(io.Reader, *indexBuilder) error, error) {
	r := bufio.NewReader(doc)
	err := skipPreamble(r)
	var begin []byte
	if err == nil {
		begin, err = r.Peek(1)
	}
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return nil, fmt.Errorf("read repository index: %w", err)
	case string(begin) == "{":
		return []func(io.Reader, *indexBuilder) error{readJSON, readFlow}, nil
	case string(begin) == "<":
		return nil, fmt.Errorf("%w: %w instead of a repository index: if a login is needed, name credentials, and check the URL", ErrAuth, webpage.Err)
	default:
		return []func(io.Reader, *indexBuilder) error{readYAML}, nil
	}
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
	content := bufio.NewReader(doc)
	if err := skipPreamble(content); err != nil {
		return err
	}
	pieces := &pieceReader{r: content, left: b.limits.IndexEntryBytes, builder: b}
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
