package chart_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/sync/source/chart"
)

// A version that is published again under its name, with other content: who has it keeps it, and sends no request; who
// has not gets what the repository says it is now.
func TestGet_republishedVersion(t *testing.T) {
	repo := newRepository(t, httptest.NewServer)
	repo.add("web", "1.0.0", chartArchive(t, "web", "1.0.0"))
	repo.add("web", "1.1.0", chartArchive(t, "web", "1.1.0"))
	cache := newCache(t)
	ref := func(version string) chart.Reference {
		return chart.Reference{URL: repo.URL, Name: "web", Version: version}
	}
	first, err := cache.Get(t.Context(), ref("1.0.0"), chart.Credentials{})
	require.NoError(t, err)
	before, err := newCache(t).Get(t.Context(), ref("1.1.0"), chart.Credentials{})
	require.NoError(t, err)

	other := member{name: "web/templates/other.yaml", data: "{}"}
	repo.mu.Lock()
	repo.index["web"] = nil
	repo.mu.Unlock()
	repo.add("web", "1.0.0", chartArchive(t, "web", "1.0.0", other))
	repo.add("web", "1.1.0", chartArchive(t, "web", "1.1.0", other))
	repo.asked()
	again, err := cache.Get(t.Context(), ref("1.0.0"), chart.Credentials{})
	require.NoError(t, err)
	assert.Equal(t, first.Digest, again.Digest)
	assert.Empty(t, repo.asked())
	second, err := cache.Get(t.Context(), ref("1.1.0"), chart.Credentials{})
	require.NoError(t, err, "the index that is remembered announces another digest, so it is fetched again")
	assert.NotEqual(t, before.Digest, second.Digest)

	repo.mu.Lock()
	repo.files["/web-1.1.0.tgz"] = chartArchive(t, "web", "1.1.0")
	repo.mu.Unlock()
	_, err = newCache(t).Get(t.Context(), ref("1.1.0"), chart.Credentials{})
	require.ErrorIs(t, err, chart.ErrInvalidChart, "the archive was replaced, and the index was not")
	assert.ErrorContains(t, err, "was announced")
}

// What a registry sends must be what its manifest names, and all of it.
func TestGet_registrySendsAnotherLayer(t *testing.T) {
	data := chartArchive(t, "web", "1.0.0")
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(data))
	for name, sent := range map[string][]byte{
		"Other": chartArchive(t, "web", "1.0.0", member{name: "web/x", data: "x"}),
		"Half":  data[:len(data)/2],
		"Page":  []byte("<!DOCTYPE html><html>Sign in</html>"),
	} {
		t.Run(name, func(t *testing.T) {
			reg := newScriptedRegistry(t, digest, len(data))
			reg.blobs[digest] = sent
			cache := newCache(t)
			_, err := cache.Get(t.Context(), reg.chart(), chart.Credentials{PlainHTTP: true})
			require.Error(t, err)
			assert.ErrorContains(t, err, reg.host+"/team/web")

			reg.mu.Lock()
			reg.blobs[digest] = data
			reg.mu.Unlock()
			_, err = cache.Get(t.Context(), reg.chart(), chart.Credentials{PlainHTTP: true})
			require.NoError(t, err, "nothing of it was kept")
		})
	}
}

// A repository that trickles delays those who ask for it, as long as they are willing to wait, and no others.
func TestGet_slowRepositoryDelaysNoOther(t *testing.T) {
	slow, quick := newRepository(t, httptest.NewServer), newRepository(t, httptest.NewServer)
	arrived, end := make(chan struct{}), make(chan struct{})
	defer close(end)
	slow.intercept = func(w http.ResponseWriter, _ *http.Request) bool {
		_, _ = w.Write([]byte("apiVersion: v1\n"))
		_ = http.NewResponseController(w).Flush()
		close(arrived)
		<-end
		return true
	}
	quick.add("web", "1.0.0", chartArchive(t, "web", "1.0.0"))
	cache := newCache(t)
	left := make(chan error, 1)
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		_, err := cache.Get(ctx, chart.Reference{URL: slow.URL, Name: "web", Version: "1.0.0"}, chart.Credentials{})
		left <- err
	}()
	<-arrived
	_, err := cache.Get(t.Context(), chart.Reference{URL: quick.URL, Name: "web", Version: "1.0.0"}, chart.Credentials{})
	require.NoError(t, err)
	leave()
	require.ErrorIs(t, <-left, context.Canceled)
}

// A server without ETags says in whole seconds when its index has changed: a version that is published in the
// second in which the index was read is found all the same, and one that is older is not sent again.
func TestGet_indexThatChangesTwiceInASecond(t *testing.T) {
	for reason, tc := range map[string]struct {
		age      time.Duration
		notFound bool
	}{"new": {0, false}, "old": {time.Hour, true}} {
		t.Run(reason, func(t *testing.T) {
			dir, at := t.TempDir(), time.Now().Add(-tc.age)
			server := httptest.NewServer(http.FileServer(http.Dir(dir)))
			t.Cleanup(server.Close)
			publish := func(versions ...string) {
				index := "apiVersion: v1\nentries:\n  web:\n"
				for _, v := range versions {
					index += "  - {name: web, version: " + v + ", urls: [web-" + v + ".tgz]}\n"
					require.NoError(t, os.WriteFile(filepath.Join(dir, "web-"+v+".tgz"), chartArchive(t, "web", v), 0o600))
				}
				require.NoError(t, os.WriteFile(filepath.Join(dir, "index.yaml"), []byte(index), 0o600))
				require.NoError(t, os.Chtimes(filepath.Join(dir, "index.yaml"), at, at))
			}
			cache := newCache(t)
			get := func(version string) error {
				_, err := cache.Get(t.Context(), chart.Reference{URL: server.URL, Name: "web", Version: version}, chart.Credentials{})
				return err
			}
			publish("1.0.0")
			require.NoError(t, get("1.0.0"))
			publish("1.1.0", "1.0.0")
			if err := get("1.1.0"); tc.notFound {
				assert.ErrorIs(t, err, chart.ErrNotFound, "the request was conditional")
			} else {
				assert.NoError(t, err)
			}
		})
	}
}
