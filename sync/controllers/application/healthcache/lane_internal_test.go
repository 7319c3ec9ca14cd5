package healthcache

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"waybill.dev/waybill/sync/controllers/application/tracker"
)

// A list is confined to the one namespace that everything open is in.
func TestLane_listsTheNamespaceOfWhatIsOpen(t *testing.T) {
	asked := ""
	c := New(t.Context(), nil, Options{Count: func(_ schema.GroupKind, namespace string) int {
		asked = "in " + namespace
		return 0
	}})
	l := c.lane(schema.GroupVersionResource{Version: "v1", Resource: "pods"})
	l.readers = readsPerKind // no reader runs
	ref := func(namespace string, i int) tracker.Ref {
		return tracker.Ref{NamespacedName: types.NamespacedName{Namespace: namespace, Name: fmt.Sprint(i)}}
	}
	decide := func() (string, bool) {
		asked = ""
		open, _ := l.any()
		return l.worthListing(open)
	}
	for i := range listThreshold - 1 {
		l.add(ref("one", i))
		l.add(ref("one", i)) // counts once
	}
	_, worth := decide()
	assert.False(t, worth, "too few")
	assert.Empty(t, asked)

	l.add(ref("other", 0))
	namespace, worth := decide()
	assert.True(t, worth)
	assert.Empty(t, namespace, "in two namespaces")
	assert.Equal(t, "in ", asked)

	l.add(ref("one", listThreshold))
	l.remove(ref("other", 0))
	l.remove(ref("other", 0))
	l.remove(ref("third", 0)) // was never open
	namespace, worth = decide()
	assert.True(t, worth)
	assert.Equal(t, "one", namespace)
	assert.Equal(t, "in one", asked)

	c.listings = maxListings
	_, worth = decide()
	assert.False(t, worth, "as many kinds are listed as may be")
	assert.Empty(t, asked)
}

// refusing is an API server that refuses every read.
type refusing struct {
	dynamic dynamic.Interface
	reads   atomic.Int64
}

func newRefusing(t *testing.T) *refusing {
	t.Helper()
	r := &refusing{}
	d, err := dynamic.NewForConfig(&rest.Config{Host: "http://refusing", QPS: -1, Transport: r})
	require.NoError(t, err)
	r.dynamic = d
	return r
}

func (r *refusing) RoundTrip(request *http.Request) (*http.Response, error) {
	r.reads.Add(1)
	return &http.Response{
		Request: request, StatusCode: http.StatusForbidden, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("no")),
	}, nil
}

func (r *refusing) Metadata() metadata.Interface { return nil }
func (r *refusing) Dynamic() dynamic.Interface   { return r.dynamic }

// However often an object changes that cannot be read, there is one series of further tries.
func TestLane_triesAgainOncePerObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newRefusing(t)
		c := New(t.Context(), server, Options{
			Changed: func(tracker.Ref) {},
			Count:   func(schema.GroupKind, string) int { return 1 },
		})
		const versions = 100
		for i := range versions {
			q := Query{Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, Version: fmt.Sprint(i + 1)}
			q.Kind, q.Name = "Pod", "a"
			c.Get(q)
			synctest.Wait()
		}
		assert.EqualValues(t, versions, server.reads.Load(), "each version is read at once")
		const tries = 10
		<-time.After(tries*lastRetry + time.Second)
		synctest.Wait()
		assert.EqualValues(t, versions+tries, server.reads.Load())
	})
}
