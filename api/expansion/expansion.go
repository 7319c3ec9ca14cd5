package expansion

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// Limits bound what the aliases of one document may stand for. Zero fields take the value of
// DefaultLimits.
type Limits struct {
	// AliasNodes is the number of values.
	AliasNodes int
	// AliasBytes is the size of their texts.
	AliasBytes int
}

// DefaultLimits returns limits that no sane document reaches: 50,000 values, and 5 MiB.
func DefaultLimits() Limits {
	return Limits{AliasNodes: 50_000, AliasBytes: 5 << 20}
}

// TooLargeError says that aliases stand for more than allowed.
type TooLargeError struct {
	// Line is where that was noticed, 1-based.
	Line int

	what, limit string
	most        int
}

// Error names the limit.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("aliases stand for too many %s (limit %s is %d)", e.what, e.limit, e.most)
}

// ErrSyntax: a text is not YAML. It does not say where: the text may be secret.
var ErrSyntax = errors.New("not valid YAML")

// Text checks every document of a YAML text. The error is a *TooLargeError, or ErrSyntax for a text
// that may have aliases and cannot be parsed. What has no aliases is not parsed.
func Text(content []byte, l Limits) error {
	if !bytes.ContainsRune(content, '&') || !bytes.ContainsRune(content, '*') {
		return nil
	}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	for {
		var root yaml.Node
		err := decoder.Decode(&root)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return ErrSyntax
		}
		if err := Node(&root, l); err != nil {
			return err
		}
	}
}

// Node checks a value and everything below it. The error is a *TooLargeError.
func Node(n *yaml.Node, l Limits) error {
	d := DefaultLimits()
	if l.AliasNodes <= 0 {
		l.AliasNodes = d.AliasNodes
	}
	if l.AliasBytes <= 0 {
		l.AliasBytes = d.AliasBytes
	}
	m := &measure{limits: l}
	return m.add(n, false)
}

// measure writes out aliases as a decoder of the document would, until that is too much: also where
// one stands for itself.
type measure struct {
	limits Limits
	// nodes and bytes are what aliases stood for so far.
	nodes, bytes int
}

// add measures a value; aliased says that an alias stands for it.
func (m *measure) add(n *yaml.Node, aliased bool) error {
	if n.Kind == yaml.AliasNode {
		return m.add(n.Alias, true)
	}
	if aliased {
		m.nodes++
		m.bytes += len(n.Value)
		switch {
		case m.nodes > m.limits.AliasNodes:
			return &TooLargeError{Line: n.Line, what: "values", limit: "AliasNodes", most: m.limits.AliasNodes}
		case m.bytes > m.limits.AliasBytes:
			return &TooLargeError{Line: n.Line, what: "bytes", limit: "AliasBytes", most: m.limits.AliasBytes}
		}
	}
	for _, child := range n.Content {
		if err := m.add(child, aliased); err != nil {
			return err
		}
	}
	return nil
}
