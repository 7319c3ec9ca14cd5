package webhooks

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A user who may write a ConfigMap has all installations of a namespace read: that takes the memory of one.
func TestValuesUsers_areReadOneByOne(t *testing.T) {
	values := strings.Repeat("x", 1<<20)
	item := func(i int) string {
		return fmt.Sprintf(`{"metadata": {"name": "i%d"}, "spec": {"values": {"valuesFrom": [], "x": %q}, "applicationRef": {"name": "web"}, `+
			`"valuesFrom": [{"kind": "Secret", "name": "v"}]}}`, i, values)
	}
	parts := []io.Reader{strings.NewReader(`{"kind": "ApplicationInstallationList", "metadata": {"continue": "more"}, "items": [` + item(0))}
	for i := 1; i < 40; i++ {
		parts = append(parts, &lazy{make: func() string { return "," + item(i) }})
	}
	page := io.MultiReader(append(parts, strings.NewReader(`]}`))...)

	var before, during runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	seen := 0
	next, err := readPage(page, func(user *valuesUser) {
		assert.Equal(t, fmt.Sprintf("i%d", seen), user.Metadata.Name)
		assert.Equal(t, "web", user.Spec.ApplicationRef.Name)
		require.Len(t, user.Spec.ValuesFrom, 1)
		if seen++; seen == 36 {
			runtime.GC()
			runtime.ReadMemStats(&during)
		}
	})
	require.NoError(t, err)
	assert.Equal(t, "more", next)
	assert.Equal(t, 40, seen)
	assert.Less(t, int64(during.HeapAlloc)-int64(before.HeapAlloc), int64(16<<20))
}

// What was not read to its end may lack the installation that matters.
func TestValuesUsers_noPageIsCutOff(t *testing.T) {
	const page = `{"metadata": {}, "items": [{"metadata": {"name": "a"}, "spec": {}}]}`
	next, err := readPage(strings.NewReader(page), func(*valuesUser) {})
	require.NoError(t, err)
	assert.Empty(t, next)
	for i := range page {
		_, err := readPage(strings.NewReader(page[:i]), func(*valuesUser) {})
		require.Error(t, err, page[:i])
	}
	_, err = readPage(strings.NewReader(`{"items": null}`), func(*valuesUser) {})
	require.NoError(t, err)
}

// lazy makes what it reads when it is needed.
type lazy struct {
	make func() string
	text io.Reader
}

func (l *lazy) Read(p []byte) (int, error) {
	if l.text == nil {
		l.text = strings.NewReader(l.make())
	}
	return l.text.Read(p)
}
