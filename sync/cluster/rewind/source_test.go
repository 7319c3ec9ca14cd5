package rewind

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// server is an API server with one answer for each request.
type server struct {
	version  string // of lists
	refusals int    // of the next watches
	err      error  // of watches
	takes    time.Duration
	watching *watch.FakeWatcher
	lists    int
}

func (s *server) list(context.Context, metav1.ListOptions) (runtime.Object, error) {
	s.lists++
	return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: s.version}}, nil
}

func (s *server) watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	if s.refusals > 0 {
		s.refusals--
		return nil, fmt.Errorf("dial: %w", syscall.ECONNREFUSED)
	}
	if s.err != nil {
		return nil, s.err
	}
	<-time.After(s.takes)
	s.watching = watch.NewFake()
	return s.watching, nil
}

// observed is the source of a reflector, and what it reported.
type observed struct {
	*server
	source *cache.ListWatch
	told   []string
}

func observe() *observed {
	o := &observed{server: &server{}}
	o.source = Source(&cache.ListWatch{ListWithContextFunc: o.server.list, WatchFuncWithContext: o.server.watch}, func(err error) {
		o.told = append(o.told, err.Error())
	})
	return o
}

// listAt lists, as of a version.
func (o *observed) listAt(t *testing.T, version string) {
	t.Helper()
	o.version = version
	_, err := o.source.ListWithContext(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
}

// goOn watches from a version.
func (o *observed) goOn(t *testing.T, version string) error {
	t.Helper()
	w, err := o.source.WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: version})
	if err == nil {
		w.Stop()
	}
	return err
}

// A watch goes on where it was, unless the API server was away: it may have been restored, and would
// be silent until it has caught up.
func TestSource_listsAnewOnceConnectionsWereRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := observe()
		o.listAt(t, "10")
		require.NoError(t, o.goOn(t, "10"))
		require.NoError(t, o.goOn(t, "12"), "a watch ends every few minutes, and goes on")

		o.refusals, o.version = 100, "13"
		began := time.Now()
		err := o.goOn(t, "12")
		require.True(t, apierrors.IsResourceExpired(err), "%v", err)
		assert.True(t, o.watching.IsStopped())
		assert.Less(t, time.Since(began), 100*6*time.Second, "it does not take ever longer to see that the API server is back")
		o.listAt(t, "13")
		require.NoError(t, o.goOn(t, "13"))

		o.err = errors.New("too many requests")
		require.Error(t, o.goOn(t, "13"))
		o.err = nil
		require.NoError(t, o.goOn(t, "13"), "the API server was there")
		assert.Empty(t, o.told)

		o.refusals, o.version = 1, "4"
		require.True(t, apierrors.IsResourceExpired(o.goOn(t, "13")))
		assert.Len(t, o.told, 1, "before the reflector lists, which backs off first")
	})
}

// An API server that starts lets clients wait, and refuses none.
func TestSource_looksWhereAWatchIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := observe()
		o.listAt(t, "10")
		o.takes = time.Minute
		require.NoError(t, o.goOn(t, "10"), "it was only slow")
		o.version = "4"
		require.True(t, apierrors.IsResourceExpired(o.goOn(t, "10")))
		assert.Len(t, o.told, 1)
	})
}

// An API server that ends cuts its watches; behind a load balancer, the next connection is not refused.
func TestSource_looksWhereTheWatchBeforeWasCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := observe()
		watchFrom := func(version string) error {
			w, err := o.source.WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: version, TimeoutSeconds: ptr.To(int64(300))})
			if err == nil {
				w.Stop()
			}
			return err
		}
		o.listAt(t, "10")
		lists := o.lists
		require.NoError(t, watchFrom("10"))
		<-time.After(300 * time.Second)
		require.NoError(t, watchFrom("12"), "it ended by itself")
		assert.Equal(t, lists, o.lists)

		<-time.After(299 * time.Second)
		o.version = "12"
		require.NoError(t, watchFrom("12"), "only the connection was lost")
		assert.Equal(t, lists+1, o.lists)
		assert.Empty(t, o.told)

		<-time.After(time.Second)
		o.version = "4"
		require.True(t, apierrors.IsResourceExpired(watchFrom("12")))
		assert.Len(t, o.told, 1)
		o.listAt(t, "4")
		lists = o.lists
		require.NoError(t, watchFrom("4"), "the list was later")
		assert.Equal(t, lists, o.lists)
	})
}

func TestSource_waitsNoLongerThanItsContext(t *testing.T) {
	o := observe()
	o.refusals = 1
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := o.source.WatchWithContext(ctx, metav1.ListOptions{})
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}

func TestSource_tellsThatTimeWentBack(t *testing.T) {
	for reason, tc := range map[string]struct {
		reached, listed string
		told            bool
	}{
		"time goes on":                           {"20", "21", false},
		"nothing happened":                       {"20", "20", false},
		"fewer digits":                           {"100", "99", true},
		"a version of an aggregated API server":  {"20", "a1", false},
		"an older list, as of a restored server": {"20", "11", true},
		"a busy API server":                      {"20", "90000000", false},
		"restored with a gap (--bump-revision)":  {"20", "1000000011", true},
	} {
		t.Run(reason, func(t *testing.T) {
			o := observe()
			o.listAt(t, "10")
			require.NoError(t, o.goOn(t, tc.reached))
			o.listAt(t, tc.listed)
			var want []string
			if tc.told {
				want = []string{fmt.Sprintf("the API server went back in time, from resource version %s to %s: its etcd was restored from a snapshot", tc.reached, tc.listed)}
			}
			assert.Equal(t, want, o.told)
			o.listAt(t, tc.listed)
			assert.Equal(t, want, o.told, "once")
		})
	}
}

// Lists are streamed where the API server can.
func TestSource_readsStreamedLists(t *testing.T) {
	o := observe()
	o.listAt(t, "20")
	w, err := o.source.WatchWithContext(t.Context(), metav1.ListOptions{SendInitialEvents: ptr.To(true)})
	require.NoError(t, err)
	item := func(version string, end bool) *metav1.PartialObjectMetadata {
		made := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}
		if end {
			made.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
		}
		return made
	}
	send := func(e watch.EventType, object runtime.Object) {
		go o.watching.Action(e, object)
		assert.Equal(t, watch.Event{Type: e, Object: object}, <-w.ResultChan())
	}
	send(watch.Added, item("5", false))
	assert.Empty(t, o.told, "objects are older than the list that they are in")
	send(watch.Bookmark, item("11", true))
	assert.Len(t, o.told, 1)
	send(watch.Bookmark, item("12", false))
	w.Stop()
	_, open := <-w.ResultChan()
	assert.False(t, open)
	assert.Len(t, o.told, 1)
}

// The process ends with an error, also where it does not lead.
func TestGuard(t *testing.T) {
	g := NewGuard()
	assert.False(t, g.NeedLeaderElection())
	g.tell(&Error{Before: "2", Now: "1"})
	g.tell(&Error{Before: "3", Now: "1"}) // from another informer
	require.EqualError(t, g.Start(t.Context()),
		"restart to read everything again: the API server went back in time, from resource version 2 to 1: its etcd was restored from a snapshot")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, NewGuard().Start(ctx))
}
