package git_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"waybill.dev/waybill/sync/source/git"
)

func TestSweep_removesWhatNobodyUses(t *testing.T) {
	s := newHTTPS(t)
	o := s.newOrigin(t, map[string]string{"a.txt": "a"})
	dir := t.TempDir()
	clock := clocktesting.NewFakePassiveClock(time.Now())
	store := newStoreIn(t, dir, git.WithClock(clock))
	tree := openRef(t, store, o.https(s), git.Ref{})
	sweep := func() int {
		n, err := store.Sweep(time.Hour)
		require.NoError(t, err)
		return n
	}

	assert.Zero(t, sweep(), "it was just used")
	clock.SetTime(clock.Now().Add(2 * time.Hour))
	assert.Zero(t, sweep(), "it is open")
	tree.Close()
	assert.Equal(t, 1, sweep(), "it is not needed")
	assert.Empty(t, generations(t, dir))
	assert.Equal(t, "a", readFile(t, openRef(t, store, o.https(s), git.Ref{}), "a.txt"), "it comes back when it is asked for")
}

func TestSweep_removesWhatAnEarlierProcessLeft(t *testing.T) {
	s := newHTTPS(t)
	o := s.newOrigin(t, map[string]string{"a.txt": "a"})
	dir := t.TempDir()
	first := newStoreIn(t, dir)
	openRef(t, first, o.https(s), git.Ref{}).Close()
	require.NoError(t, first.Close())
	require.NoError(t, os.Mkdir(dir+"/trash-of-a-killed-sweep", 0o700))
	clock := clocktesting.NewFakePassiveClock(time.Now())
	second := newStoreIn(t, dir, git.WithClock(clock))

	n, err := second.Sweep(time.Hour)
	require.NoError(t, err)
	assert.Zero(t, n, "its user may still come")
	clock.SetTime(clock.Now().Add(2 * time.Hour))
	n, err = second.Sweep(time.Hour)
	require.NoError(t, err)
	assert.Equal(t, 2, n)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 1, "only the lock file is left")
}
