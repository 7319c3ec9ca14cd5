package cluster

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// stalls sends the beginning of an answer, and then nothing for as long as a caller waits for it.
func stalls(size int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		piece := strings.Repeat("a", 64<<10)
		_, err := io.WriteString(w, `{"type":"ADDED","object":{"metadata":{"name":"`)
		for sent := 0; sent < size && err == nil; sent += len(piece) {
			_, err = io.WriteString(w, piece)
		}
		if flusher, ok := w.(http.Flusher); ok {
			flusher.Flush()
		}
		<-r.Context().Done()
	}
}

// stalling returns kinds whose answers stall after so many bytes each.
func stalling(kinds, size int) map[string]http.HandlerFunc {
	paths := map[string]http.HandlerFunc{}
	for i := range kinds {
		paths[fmt.Sprintf("/api/v1/kind%d", i)] = stalls(size)
	}
	return paths
}

func watchKinds(t *testing.T, c *Cluster, kinds int) {
	for i := range kinds {
		resource := schema.GroupVersionResource{Version: "v1", Resource: fmt.Sprintf("kind%d", i)}
		w, err := c.Metadata().Resource(resource).Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			return // it was cut off already
		}
		t.Cleanup(w.Stop)
		go func() {
			for range w.ResultChan() {
				continue
			}
		}()
	}
}

// Answers that are each within the limits, and never end, do not add up.
func TestIntake_manyAnswersUnderWay(t *testing.T) {
	const kinds = 100
	c, _ := engagedWithin(t, newHostile(t, stalling(kinds, 20<<20)), defaultLimits())
	runtime.GC()
	before := heapInUse()
	watchKinds(t, c, kinds)
	assert.Never(t, func() bool { return heapInUse()-before > 400<<20 }, 5*time.Second, 50*time.Millisecond)
}

func heapInUse() int64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapInuse)
}

// One answer at a time goes on where a cluster has much under way; the others wait for it to end.
func TestIntake_answersTakeTurns(t *testing.T) {
	const lists = 6
	text := `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","items":[{"metadata":{"name":"` + strings.Repeat("a", 12<<20) + `"}}]}`
	c, got := engagedWithin(t, newHostile(t, map[string]http.HandlerFunc{configMapPath: func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, text)
	}}), defaultLimits())
	errs := make(chan error, lists)
	for range lists {
		go func() {
			_, err := c.Metadata().Resource(configMaps).List(t.Context(), metav1.ListOptions{})
			errs <- err
		}()
	}
	for range lists {
		require.True(t, <-errs == nil, "the text of an error may be large")
	}
	assert.NoError(t, got())
}

// What several clusters send at once is bounded as well: the one that sends most is disconnected, and
// the others do not notice.
func TestUnderWay_disconnectsTheHeaviest(t *testing.T) {
	all := newUnderWay()
	var told []string
	cluster := func(name string) *part {
		return &part{share: all.share(func(err error) {
			var limit *LimitError
			require.ErrorAs(t, err, &limit)
			told = append(told, name+": "+limit.Error())
		})}
	}
	small, large, other := cluster("small"), cluster("large"), cluster("other")
	small.add(40 << 20)
	large.add(220 << 20)
	other.add(180 << 20)
	assert.Empty(t, told)
	small.add(20 << 20)
	said := ": the decoded size of all answers under way, most of them of this cluster, exceeds the limit of 448 MiB"
	assert.Equal(t, []string{"large" + said}, told)
	large.add(20 << 20) // until its connections are closed
	other.add(20 << 20)
	assert.Len(t, told, 1, "what is being cut off does not count")

	large.end(true)
	require.Eventually(t, func() bool { return large.share.weight() == 0 }, time.Minute, 10*time.Millisecond)
	again := &part{share: large.share}
	again.add(220 << 20)
	assert.Equal(t, []string{"large" + said, "large" + said}, told, "once it is back, it counts as before")
}

func (h *holder) weight() int64 {
	h.pool.mu.Lock()
	defer h.pool.mu.Unlock()
	return h.held
}

// A caller that waits for the turn waits no longer than for the answer.
func TestPart_turn(t *testing.T) {
	s := newUnderWay().share(func(error) {})
	first, second, small := &part{share: s}, &part{share: s}, &part{share: s}
	first.add(maxUnderWay + 1)
	require.NoError(t, first.await(t.Context(), maxUnderWay+1))
	require.NoError(t, first.await(t.Context(), maxUnderWay+1), "it has the turn")
	require.NoError(t, small.await(t.Context(), smallAnswer-1))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, second.await(ctx, smallAnswer), context.DeadlineExceeded)
	time.AfterFunc(10*time.Millisecond, func() { first.end(true) })
	require.NoError(t, second.await(t.Context(), smallAnswer))
}

// An API server does not decide for how long the hub waits for it.
func TestIntake_shortensRetryAfter(t *testing.T) {
	for said, want := range map[string]string{"": "", "1": "1", "5": "5", "86400": "5", "-1": "5", "99999999999999999999": "5", "Fri, 31 Dec 2060 23:59:59 GMT": "5"} {
		header := http.Header{}
		if said != "" {
			header.Set("Retry-After", said)
		}
		shortenRetry(header)
		assert.Equal(t, want, header.Get("Retry-After"), said)
	}
}

// Hostile clusters of one hub that stay within what one may send are not more than it holds.
func TestIntake_manyAnswersOfManyClusters(t *testing.T) {
	const hostile, kinds = 3, 8
	known, err := newKinds(nil)
	require.NoError(t, err)
	r := NewRegistry(&Cluster{kinds: known, views: newViews()}, Options{})
	t.Cleanup(r.Close)
	clusters := make([]*Cluster, hostile)
	key := func(i int) types.NamespacedName { return types.NamespacedName{Name: fmt.Sprint(i)} }
	for i := range hostile {
		r.Ensure(key(i), "a", newHostile(t, stalling(kinds, 20<<20)).config())
		require.Eventually(t, func() bool {
			clusters[i], err = r.Get(key(i))
			return err == nil
		}, time.Minute, 5*time.Millisecond)
	}
	runtime.GC()
	before := heapInUse()
	for _, c := range clusters {
		watchKinds(t, c, kinds)
	}
	assert.Never(t, func() bool { return heapInUse()-before > 691<<20 }, 5*time.Second, 50*time.Millisecond)
}
