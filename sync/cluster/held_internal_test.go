package cluster

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

const (
	limit = 30 * time.Second
	often = 20 * time.Millisecond
)

// narrow returns bounds that few answers reach.
func narrow(held, all int64) *Bounds {
	b := NewBounds()
	b.options.limits.held = held
	b.held = newPool(all, "everything that is held")
	return b
}

// boundTo returns a client of a server, and bounds it.
func boundTo(t *testing.T, b *Bounds, server *hostile) kubernetes.Interface {
	t.Helper()
	config, err := b.Bound(server.config())
	require.NoError(t, err)
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return client
}

// pageOf answers with a list of which a part is to come, if more says so.
func pageOf(more bool) http.HandlerFunc {
	next := map[bool]string{true: "more", false: ""}[more]
	return func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"continue":%q,"resourceVersion":"1"},"items":[{"data":{"a":%q}}]}`, next, strings.Repeat("x", 256<<10))
	}
}

// listPages lists as clients do, until the server says that it has no more, and at most so many pages.
func listPages(t *testing.T, client kubernetes.Interface, most int) (pages int, err error) {
	t.Helper()
	for next := ""; pages < most; pages++ {
		list, err := client.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{Limit: 500, Continue: next})
		if err != nil {
			return pages, err
		}
		if next = list.Continue; next == "" {
			return pages + 1, nil
		}
	}
	return pages, nil
}

// Each page of a list fits, and a server that never ends has all of them held at once.
func TestBounds_listsThatNeverEnd(t *testing.T) {
	server := newHostile(t, map[string]http.HandlerFunc{configMapPath: pageOf(true)})
	pages, err := listPages(t, boundTo(t, narrow(4<<20, 1<<30), server), 100)
	require.ErrorContains(t, err, "the decoded size of what is held of the cluster, with the response to GET "+configMapPath+" exceeds the limit of 4 MiB")
	assert.Less(t, pages, 10)
}

// What was answered before is garbage once it is asked again: a page that is open for long is not cut.
func TestBounds_repeatedAnswersDoNotAddUp(t *testing.T) {
	server := newHostile(t, map[string]http.HandlerFunc{configMapPath: pageOf(false)})
	client := boundTo(t, narrow(4<<20, 1<<30), server)
	for range 20 {
		_, err := listPages(t, client, 1)
		require.NoError(t, err)
	}
}

// Events before the end of what there is are gathered by who watches; those after it are not.
func TestBounds_watchesThatNeverTellTheEnd(t *testing.T) {
	const events = 40
	for name, tc := range map[string]struct {
		reason  string
		options metav1.ListOptions
		cut     bool
	}{
		"AllObjects": {"they are gathered", metav1.ListOptions{SendInitialEvents: ptr.To(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true}, true},
		"Changes":    {"each takes the place of one before", metav1.ListOptions{ResourceVersion: "1"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			server := newHostile(t, map[string]http.HandlerFunc{configMapPath: func(w http.ResponseWriter, _ *http.Request) {
				for i := range events {
					_, _ = fmt.Fprintf(w, `{"type":"ADDED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"c%d"},"data":{"a":%q}}}`+"\n", i, strings.Repeat("x", 256<<10))
				}
			}})
			w, err := boundTo(t, narrow(4<<20, 1<<30), server).CoreV1().ConfigMaps("").Watch(t.Context(), tc.options)
			require.NoError(t, err)
			seen := 0
			for range w.ResultChan() {
				runtime.GC() // the client is garbage, and its watch goes on
				seen++
			}
			if tc.cut {
				assert.Less(t, seen, 10, tc.reason)
			} else {
				assert.Equal(t, events, seen, tc.reason)
			}
		})
	}
}

// total returns how much is held.
func (p *pool) total() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sum
}

// A client may be there for long after what it has read: that is garbage by then.
func TestTally_forgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := newPool(100, "everything")
		sum := newTally(10, held.holder(func(error) {}))
		request := func(path string) string {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://server"+path, nil)
			require.NoError(t, err)
			return sum.begin(req)
		}
		one, other := request("/api/v1/pods"), request("/api/v1/pods?labelSelector=a")
		assert.False(t, sum.add(one, 6))
		assert.False(t, sum.add(other, 4))
		time.Sleep(heldFor - time.Second)
		assert.Equal(t, other, request("/api/v1/pods?labelSelector=a&continue=more"))
		assert.True(t, sum.add(other, 1))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		assert.EqualValues(t, 5, held.total(), "a list that goes on is held as a whole")
		time.Sleep(2 * heldFor)
		synctest.Wait()
		assert.Zero(t, held.total())
		sum.mu.Lock()
		defer sum.mu.Unlock()
		assert.False(t, sum.sweeping)
	})
}

// One object, read or made, is not as large as a list may be: an API server keeps 1.5 MiB of it.
func TestBounds_oneObject(t *testing.T) {
	for name, path := range map[string]string{"Get": "/api/v1/namespaces/a/configmaps/one", "Create": "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"} {
		t.Run(name, func(t *testing.T) {
			server := newHostile(t, map[string]http.HandlerFunc{path: sends(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"`, `x`)})
			client := boundTo(t, NewBounds(), server)
			method := http.MethodGet
			if name == "Create" {
				method = http.MethodPost
			}
			err := client.CoreV1().RESTClient().Verb(method).AbsPath(path).Do(t.Context()).Error()
			require.ErrorContains(t, err, "exceeds the limit of 6 MiB")
		})
	}
}

// Each of many pages holds less than one may: together they hold no more than the process has for all of them. Once they are
// garbage, others may hold as much.
func TestBounds_ofAllTogether(t *testing.T) {
	server := newHostile(t, map[string]http.HandlerFunc{configMapPath: pageOf(true)})
	b := narrow(4<<20, 10<<20)
	clients := make([]kubernetes.Interface, 8)
	for i := range clients {
		clients[i] = boundTo(t, b, server)
		_, err := listPages(t, clients[i], 5)
		require.True(t, err == nil || strings.Contains(err.Error(), "everything that is held"), err)
	}
	cut := 0
	for _, client := range clients { // those that hold most are, whichever of them asked last
		if _, err := listPages(t, client, 1); err != nil {
			assert.ErrorContains(t, err, "everything that is held exceeds the limit of 10 MiB")
			cut++
		}
	}
	assert.Positive(t, cut)
	assert.Less(t, cut, len(clients))
	runtime.KeepAlive(clients)
	clear(clients)
	require.Eventually(t, func() bool {
		runtime.GC()
		b.held.mu.Lock()
		defer b.held.mu.Unlock()
		return b.held.sum == 0 && len(b.held.holders) == 0
	}, limit, often, "what garbage held is not held")
	_, err := listPages(t, boundTo(t, b, server), 5)
	require.NoError(t, err)
}

// What is no list, and has no name, keeps the bounds of a response.
func TestIsOne(t *testing.T) {
	for path, want := range map[string]bool{
		"/api/v1/pods": false, "/api/v1/namespaces": false, "/api/v1/namespaces/a/pods": false, "/apis/apps/v1/deployments": false, "/version": false, "/api": false, "/apis/apps/v1": false,
		"/api/v1/namespaces/a": true, "/api/v1/namespaces/a/pods/web": true, "/api/v1/namespaces/a/pods/web/status": true, "/api/v1/nodes/n": true, "/apis/apps/v1/namespaces/a/deployments/d": true,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://server"+path, nil)
		require.NoError(t, err)
		assert.Equal(t, want, isOne(req, path), path)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://server/apis/apps/v1/namespaces/a/deployments", io.NopCloser(strings.NewReader("{}")))
	require.NoError(t, err)
	assert.True(t, isOne(req, req.URL.Path), "one is created")
}
