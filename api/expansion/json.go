package expansion

import (
	"bytes"
	"fmt"
	"io"
)

// DefaultJSONValues is the default limit of JSON and JSONReader. Decoded into maps and lists, as many
// values take 20 MB or less, beside their texts.
const DefaultJSONValues = 200_000

// TooManyValuesError says that a JSON text contains more values than allowed.
type TooManyValuesError struct{ most int }

// Error names the limit.
func (e *TooManyValuesError) Error() string {
	return fmt.Sprintf("the JSON text contains more than %d values", e.most)
}

// JSON checks that a JSON text contains at most that many values, keys included, without decoding it:
// three bytes such as `{},` become a hundred in memory. Zero stands for DefaultJSONValues. The error is a
// *TooManyValuesError; what is not valid JSON is not noticed.
func JSON(content []byte, most int) error {
	return newCounter(most).add(content)
}

// JSONValues is JSON, and returns how many values the text contains, for those who reserve memory
// for them.
func JSONValues(content []byte, most int) (values int, err error) {
	c := newCounter(most)
	if err := c.add(content); err != nil {
		return c.most, err
	}
	return c.most - c.left, nil
}

// JSONReader returns a reader of the same text, which fails with a *TooManyValuesError as soon as the
// text contains more values than JSON allows. What it returned until then is within the limit.
func JSONReader(r io.Reader, most int) io.Reader {
	return &jsonReader{from: r, counter: newCounter(most)}
}

type jsonReader struct {
	from    io.Reader
	counter *counter
}

// Read implements io.Reader.
func (r *jsonReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if tooMany := r.counter.add(p[:n]); tooMany != nil {
		return 0, tooMany
	}
	return n, err
}

// counter counts what comes before a value: an opening bracket, a comma or a colon, outside of strings.
type counter struct {
	most, left int
	// inString and escaped say where the text that was counted so far ends.
	inString, escaped bool
}

func newCounter(most int) *counter {
	if most <= 0 {
		most = DefaultJSONValues
	}
	return &counter{most: most, left: most}
}

func (c *counter) add(text []byte) error {
	for len(text) > 0 {
		if c.inString {
			text = c.skipString(text)
			continue
		}
		next := len(text)
		for i, b := range text {
			if b == '"' {
				c.inString, next = true, i+1
				break
			}
			if b == '{' || b == '[' || b == ',' || b == ':' {
				c.left--
			}
		}
		if c.left < 0 {
			return &TooManyValuesError{most: c.most}
		}
		text = text[next:]
	}
	return nil
}

// skipString returns what follows the string that text begins in, or nothing if that does not end in it.
func (c *counter) skipString(text []byte) []byte {
	if c.escaped {
		c.escaped = false
		return text[1:]
	}
	next := bytes.IndexAny(text, `"\`)
	if next < 0 {
		return nil
	}
	c.escaped, c.inString = text[next] == '\\', text[next] == '\\'
	return text[next+1:]
}
