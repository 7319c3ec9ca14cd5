package git

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
)

// wanted is what a server's list of references is read for, besides branches and tags. A server of
// this protocol sends all that it has, and for pull requests and changes some have hundreds of
// thousands.
type wanted struct {
	// name is the full name of a reference; empty if none is named.
	name string
	// commit is what one reference must point to if there is such a one, in hexadecimal digits; empty if
	// it does not matter.
	commit string
}

// wanted returns what the list is read for to find the reference. It is the same for all that branches
// and tags suffice for.
func (r Ref) wanted() wanted {
	if isBranchOrTag(r.Name) {
		return wanted{}
	}
	return wanted{name: r.Name}
}

// keeps reports whether a line of the list may matter.
func (w wanted) keeps(line []byte) bool {
	hash, rest, found := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
	if !found || len(hash) != hexBytes || strings.Contains(rest, "\x00") {
		return true // no reference, or the one that capabilities follow
	}
	name := strings.TrimSuffix(rest, peeledMark)
	return !strings.HasPrefix(name, "refs/") || isBranchOrTag(name) || name == w.name || hash == w.commit
}

func isBranchOrTag(name string) bool {
	return strings.HasPrefix(name, "refs/heads/") || strings.HasPrefix(name, "refs/tags/")
}

const (
	hexBytes = 40
	// peeledMark follows the name of a tag on the line of the object that it points to.
	peeledMark = "^{}"
)

// listing passes on the lines of a list of references that are wanted. It reads nothing beyond the end
// of the list that is not asked for.
type listing struct {
	io.Closer
	wanted
	lines *pktline.Scanner
	// passed is what was not read yet of what is passed on.
	passed bytes.Buffer
	// skipped is the line before if it was not passed on: what a tag points to is on the next.
	skipped []byte
}

// newListing bounds both the list and what is kept of it.
func newListing(body io.ReadCloser, w wanted, l Limits) io.ReadCloser {
	all := &boundedBody{ReadCloser: body, left: l.AdvertisementBytes,
		over: limitError("AdvertisementBytes", l.AdvertisementBytes, "the server's list of references is too long")}
	return &boundedBody{ReadCloser: &listing{Closer: body, wanted: w, lines: pktline.NewScanner(all)}, left: l.ReferenceBytes,
		over: limitError("ReferenceBytes", l.ReferenceBytes, "the server has too many branches and tags")}
}

// Read implements io.Reader.
func (l *listing) Read(p []byte) (int, error) {
	for l.passed.Len() == 0 {
		if !l.lines.Scan() {
			return 0, l.failed()
		}
		l.line(l.lines.Bytes())
	}
	return l.passed.Read(p)
}

func (l *listing) failed() error {
	switch err := l.lines.Err(); {
	case err == nil:
		return io.EOF
	case errors.Is(err, io.EOF): // in the middle of a line
		return io.ErrUnexpectedEOF
	default:
		return err
	}
}

// line passes on a line, or skips it.
func (l *listing) line(line []byte) {
	if !l.keeps(line) {
		l.skipped = append(l.skipped[:0], line...)
		return
	}
	if len(l.skipped) > 0 && bytes.HasSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte(peeledMark)) {
		l.pass(l.skipped)
	}
	l.skipped = l.skipped[:0]
	l.pass(line)
	if l.commit != "" && bytes.HasPrefix(line, []byte(l.commit)) {
		l.commit = ""
	}
}

func (l *listing) pass(line []byte) {
	if len(line) == 0 {
		l.passed.Write(pktline.FlushPkt)
		return
	}
	fmt.Fprintf(&l.passed, "%04x", len(line)+len(pktline.FlushPkt))
	l.passed.Write(line)
}
