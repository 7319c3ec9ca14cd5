package excerpt_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/sync/excerpt"
)

func TestBuffer(t *testing.T) {
	for reason, tc := range map[string]struct {
		writes     []string
		head, tail string
		cut        bool
	}{
		"nothing is written":              {nil, "", "", false},
		"it fits":                         {[]string{"ab", "cd"}, "abcd", "abcd", false},
		"the last write is too much":      {[]string{"ab", "cdef"}, "abcd", "cdef", true},
		"one write is too much by itself": {[]string{"abcdefg"}, "abcd", "defg", true},
		"it is full already":              {[]string{"abcd", "e", "fghijk"}, "abcd", "hijk", true},
		"what was kept is shifted":        {[]string{"abc", "de"}, "abcd", "bcde", true},
	} {
		head, tail := excerpt.NewHead(4), excerpt.NewTail(4)
		for _, w := range tc.writes {
			for _, b := range []*excerpt.Buffer{head, tail} {
				n, err := b.Write([]byte(w))
				assert.NoError(t, err, reason)
				assert.Len(t, w, n, reason)
			}
		}
		assert.Equal(t, tc.head, head.String(), reason)
		assert.Equal(t, tc.tail, tail.String(), reason)
		for _, b := range []*excerpt.Buffer{head, tail} {
			_, cut := b.Bytes()
			assert.Equal(t, tc.cut, cut, reason)
		}
	}
}

func TestBuffer_isReadWhileItIsWritten(t *testing.T) {
	b := excerpt.NewTail(10)
	var group sync.WaitGroup
	for range 10 {
		group.Go(func() { _, _ = b.Write([]byte("abc")) })
		group.Go(func() { _ = b.String() })
	}
	group.Wait()
	assert.Len(t, b.String(), 10)
}
