package plain

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"iter"

	kjson "sigs.k8s.io/json"

	"waybill.dev/waybill/api/expansion"
	"waybill.dev/waybill/sync/render/internal/yamlvalue"
)

// jsonDocuments decodes a file with any number of JSON documents.
func jsonDocuments(content []byte, l Limits) iter.Seq[document] {
	return func(yield func(document) bool) {
		decoder := json.NewDecoder(bytes.NewReader(content))
		for {
			start := decoder.InputOffset()
			var raw json.RawMessage
			err := decoder.Decode(&raw)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(document{flaw: jsonError(content, start, err)})
				return
			}
			line := lineAt(content, decoder.InputOffset()-int64(len(raw)))
			if !yield(jsonDocument(raw, line, l)) {
				return
			}
		}
	}
}

func jsonDocument(raw []byte, line int, l Limits) document {
	d := document{line: line}
	if expansion.Nodes(raw) > l.Nodes {
		d.flaw = tooManyNodes(line, l)
		return d
	}
	strict, err := kjson.UnmarshalStrict(raw, &d.value)
	switch {
	case err != nil:
		d.flaw = yamlvalue.Invalid(line, "not valid JSON: %s", err)
	case len(strict) > 0:
		d.flaw = yamlvalue.Invalid(line, "not valid JSON: %s", strict[0])
	case deeper(d.value, l.Depth):
		d.flaw = yamlvalue.Exceeded(line, "values are nested too deep (limit Depth is %d)", l.Depth)
	}
	return d
}

// jsonError finds the line of a syntax error.
func jsonError(content []byte, start int64, err error) *yamlvalue.Flaw {
	at := start
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		at = syntax.Offset
	case errors.Is(err, io.ErrUnexpectedEOF):
		at = int64(len(content))
	}
	return yamlvalue.Invalid(lineAt(content, at), "not valid JSON: %s", err)
}

// lineAt returns the line of an offset.
func lineAt(content []byte, offset int64) int {
	offset = max(0, min(offset, int64(len(content))))
	return 1 + bytes.Count(content[:offset], []byte("\n"))
}

// deeper reports whether maps and lists are nested deeper than most levels.
func deeper(value any, most int) bool {
	if most < 0 {
		return true
	}
	switch value := value.(type) {
	case map[string]any:
		for _, v := range value {
			if deeper(v, most-1) {
				return true
			}
		}
	case []any:
		for _, v := range value {
			if deeper(v, most-1) {
				return true
			}
		}
	}
	return false
}
