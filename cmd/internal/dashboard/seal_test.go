package dashboard

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSeals_openWhatTheyHaveSealed(t *testing.T) {
	file := write(t, []byte(strings.Repeat("a", 32)+"\n"))
	s, err := newSeals(file)
	require.NoError(t, err)
	sealed, err := s.seal("session", ticket{Name: "jane"})
	require.NoError(t, err)
	var got ticket
	require.NoError(t, s.open("session", sealed, &got))
	assert.Equal(t, "jane", got.Name)
	again, err := s.seal("session", ticket{Name: "jane"})
	require.NoError(t, err)
	assert.NotEqual(t, sealed, again)
	require.ErrorIs(t, s.open("other", sealed, &got), errNotSealed, "each purpose has its own")
	for _, wrong := range []string{"", "x", flip(sealed), sealed[:len(sealed)-4], strings.Repeat("A", maxCookie+1), "ä"} {
		assert.ErrorIs(t, s.open("session", wrong, &got), errNotSealed, wrong)
	}

	turn := func(content string) {
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		s.read = time.Time{}
	}
	turn(strings.Repeat("b", 32) + "\n" + strings.Repeat("a", 32))
	require.NoError(t, s.open("session", sealed, &got), "the old key still opens")
	fresh, err := s.seal("session", ticket{})
	require.NoError(t, err)
	turn(strings.Repeat("b", 32))
	require.ErrorIs(t, s.open("session", sealed, &got), errNotSealed, "until it is taken away")
	require.NoError(t, s.open("session", fresh, &got))
	turn("")
	require.NoError(t, s.open("session", fresh, &got), "a file that is being written ends no session")
}

func TestNewSeals_refuses(t *testing.T) {
	for reason, content := range map[string]string{"no key": " \n", "one that can be guessed": "secret"} {
		_, err := newSeals(write(t, []byte(content)))
		assert.Error(t, err, reason)
	}
	_, err := newSeals("/does/not/exist")
	assert.ErrorIs(t, err, os.ErrNotExist)
}
