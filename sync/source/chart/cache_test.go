package chart_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/sync/source/chart"
)

// K16, K17, K47
func TestGet_fetchesOnceAndAsksNoMore(t *testing.T) {
	repo := newRepository(t, httptest.NewServer)
	repo.add("web", "1.2.3", packDir(t, "testdata/repo/charts/web"))
	dir := t.TempDir()
	cache, err := chart.NewCache(dir)
	require.NoError(t, err)
	ref := chart.Reference{URL: repo.URL, Name: "web", Version: "1.2.3"}

	first, err := cache.Get(t.Context(), ref, chart.Credentials{})
	require.NoError(t, err)
	assert.Equal(t, "web", first.Name())
	assert.Contains(t, first.Digest, "sha256:")
	assert.Equal(t, []string{"/index.yaml", "/web-1.2.3.tgz"}, repo.asked())

	ref.URL += "/"
	second, err := cache.Get(t.Context(), ref, chart.Credentials{})
	require.NoError(t, err)
	assert.Same(t, first, second, "one parsed chart is shared")
	assert.Empty(t, repo.asked(), "an exact version that is there needs no request")

	repo.Close()
	restarted, err := chart.NewCache(dir)
	require.NoError(t, err)
	third, err := restarted.Get(t.Context(), ref, chart.Credentials{})
	require.NoError(t, err, "a source that is down does not take away what was fetched")
	assert.Equal(t, first.Digest, third.Digest)
}

func TestGet_concurrentCallersShareOneFetch(t *testing.T) {
	repo := newRepository(t, httptest.NewServer)
	repo.add("web", "1.2.3", packDir(t, "testdata/repo/charts/web"))
	cache := newCache(t)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			_, err := cache.Get(t.Context(), chart.Reference{URL: repo.URL, Name: "web", Version: "1.2.3"}, chart.Credentials{})
			assert.NoError(t, err)
		})
	}
	wg.Wait()
	assert.Len(t, repo.asked(), 2)
}

func TestGet_callerWhoLeavesDoesNotEndTheFetchOfOthers(t *testing.T) {
	repo := newRepository(t, httptest.NewServer)
	repo.add("web", "1.2.3", packDir(t, "testdata/repo/charts/web"))
	arrived, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	repo.intercept = func(http.ResponseWriter, *http.Request) bool {
		once.Do(func() { close(arrived) })
		<-goOn
		return false
	}
	cache := newCache(t)
	ref := chart.Reference{URL: repo.URL, Name: "web", Version: "1.2.3"}
	ctx, cancel := context.WithCancel(t.Context())
	left, stayed := make(chan error, 1), make(chan error, 1)
	go func() { _, err := cache.Get(ctx, ref, chart.Credentials{}); left <- err }()
	<-arrived
	go func() { _, err := cache.Get(t.Context(), ref, chart.Credentials{}); stayed <- err }()
	cancel()
	require.ErrorIs(t, <-left, context.Canceled)
	close(goOn)
	require.NoError(t, <-stayed)
}

// A new version is seen at once, and asking for it costs a conditional request when there is none.
func TestGet_unknownVersionRefreshesTheIndex(t *testing.T) {
	repo := newRepository(t, httptest.NewServer)
	repo.add("web", "1.2.3", chartArchive(t, "web", "1.2.3"))
	cache := newCache(t)
	_, err := cache.Get(t.Context(), chart.Reference{URL: repo.URL, Name: "web", Version: "1.2.3"}, chart.Credentials{})
	require.NoError(t, err)
	repo.asked()

	newer := chart.Reference{URL: repo.URL, Name: "web", Version: "1.3.0"}
	_, err = cache.Get(t.Context(), newer, chart.Credentials{})
	require.ErrorIs(t, err, chart.ErrNotFound)
	assert.Contains(t, err.Error(), "it has the versions 1.2.3")
	assert.Equal(t, []string{"/index.yaml"}, repo.asked())
	_, first := newCache(t).Get(t.Context(), newer, chart.Credentials{})
	require.EqualError(t, first, err.Error(), "it does not change from one time to the next")

	repo.add("web", "1.3.0", chartArchive(t, "web", "1.3.0"))
	got, err := cache.Get(t.Context(), newer, chart.Credentials{})
	require.NoError(t, err)
	assert.Equal(t, "1.3.0", got.Metadata.Version)
}

func TestGet_movedArchiveIsFoundByAFreshIndex(t *testing.T) {
	repo := newRepository(t, httptest.NewServer)
	repo.add("web", "1.2.3", chartArchive(t, "web", "1.2.3"))
	repo.add("web", "1.2.4", chartArchive(t, "web", "1.2.4"))
	cache := newCache(t)
	_, err := cache.Get(t.Context(), chart.Reference{URL: repo.URL, Name: "web", Version: "1.2.3"}, chart.Credentials{})
	require.NoError(t, err)

	repo.mu.Lock()
	repo.files["/moved.tgz"] = repo.files["/web-1.2.4.tgz"]
	delete(repo.files, "/web-1.2.4.tgz")
	repo.index["web"][1]["urls"] = []string{"moved.tgz"}
	repo.mu.Unlock()
	_, err = cache.Get(t.Context(), chart.Reference{URL: repo.URL, Name: "web", Version: "1.2.4"}, chart.Credentials{})
	require.NoError(t, err)
}

// A damaged cache costs a fetch, and no file outside of it.
func TestGet_damagedReferenceIsNoPath(t *testing.T) {
	repo := newRepository(t, httptest.NewServer)
	repo.add("web", "1.2.3", chartArchive(t, "web", "1.2.3"))
	ref := chart.Reference{URL: repo.URL, Name: "web", Version: "1.2.3"}
	dir := t.TempDir()
	victim := filepath.Join(dir, "victim")
	require.NoError(t, os.WriteFile(victim, []byte("not ours"), 0o600))
	get := func() error {
		cache, err := chart.NewCache(filepath.Join(dir, "cache"))
		require.NoError(t, err)
		_, err = cache.Get(t.Context(), ref, chart.Credentials{})
		return err
	}
	require.NoError(t, get())
	references, err := filepath.Glob(filepath.Join(dir, "cache", "references", "*"))
	require.NoError(t, err)
	require.Len(t, references, 1)
	require.NoError(t, os.WriteFile(references[0], []byte("sha256:../../victim"), 0o600))

	require.NoError(t, get())
	assert.FileExists(t, victim)
}

// Eviction from memory and from disk costs a fetch, never an answer.
func TestGet_boundedCachesStillAnswer(t *testing.T) {
	repo := newRepository(t, httptest.NewServer)
	versions := []string{"1.0.0", "1.0.1", "1.0.2", "1.0.3"}
	for _, v := range versions {
		repo.add("web", v, chartArchive(t, "web", v))
	}
	limits := chart.DefaultLimits()
	limits.MemoryBytes, limits.DiskBytes, limits.IndexMemoryBytes = 1, 1, 1
	cache := newCache(t, chart.WithLimits(limits))
	for range 2 {
		for _, v := range versions {
			got, err := cache.Get(t.Context(), chart.Reference{URL: repo.URL, Name: "web", Version: v}, chart.Credentials{})
			require.NoError(t, err)
			assert.Equal(t, v, got.Metadata.Version)
		}
	}
	archives := 0
	for _, path := range repo.asked() {
		if path != "/index.yaml" {
			archives++
		}
	}
	assert.Equal(t, 2*len(versions), archives)
}
