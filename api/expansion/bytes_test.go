package expansion_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/api/expansion"
)

func TestBytesReader(t *testing.T) {
	errTooMany := errors.New("too many")
	for text, want := range map[string]error{"": nil, "1234": nil, "12345": errTooMany, strings.Repeat("1", 1<<20): errTooMany} {
		for name, from := range map[string]io.Reader{"AtOnce": strings.NewReader(text), "OneByOne": iotest.OneByteReader(strings.NewReader(text))} {
			read, err := io.ReadAll(expansion.BytesReader(from, 4, errTooMany))
			assert.Equal(t, want, err, name)
			assert.LessOrEqual(t, len(read), 4, name)
		}
	}
}
