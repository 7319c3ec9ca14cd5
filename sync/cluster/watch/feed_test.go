package watch

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"waybill.dev/waybill/test/env"
)

// server answers a feed: with err as long as that is set.
type server struct {
	tries atomic.Int64
	err   atomic.Pointer[error]
	asked atomic.Pointer[context.Context] // the context of the last list
}

func (s *server) fail(err error) { s.err.Store(&err) }

func (s *server) feed(t *testing.T, out Sink[*revision]) *Feed[*revision] {
	t.Helper()
	f := New(s.source(), out, toRevision)
	f.Start(t.Context())
	t.Cleanup(f.End)
	return f
}

func (s *server) source() *cache.ListWatch {
	answer := func() error {
		s.tries.Add(1)
		if err := s.err.Load(); err != nil {
			return *err
		}
		return nil
	}
	list := func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
		s.asked.Store(&ctx)
		return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, answer()
	}
	watchFunc := func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
		if o.SendInitialEvents != nil {
			return nil, apierrors.NewInvalid(schema.GroupKind{}, "", nil) // as a server that knows no streaming lists
		}
		if err := answer(); err != nil {
			return nil, err
		}
		return apiwatch.NewFake(), nil
	}
	return selecting("", "", list, watchFunc)
}

type noSink struct{}

func (noSink) Put(*revision)               {}
func (noSink) Drop(*revision)              {}
func (noSink) Replace([]*revision, string) {}

var widgets = schema.GroupResource{Group: "example.com", Resource: "widgets"}

func notServed() error {
	return apierrors.NewGenericServerResponse(404, "list", widgets, "", "404 page not found", 0, true)
}

func TestFeed_syncs(t *testing.T) {
	f := new(server).feed(t, noSink{})
	require.NoError(t, f.Await(t.Context()))
	assert.True(t, f.State().Synced)
	f.End()
	require.ErrorIs(t, f.Await(t.Context()), ErrStopped)
}

// C37: one who may not watch is not asked again and again.
func TestFeed_givesUpWithoutRights(t *testing.T) {
	for _, err := range []error{apierrors.NewForbidden(widgets, "", errors.New("no")), apierrors.NewMethodNotSupported(widgets, "watch")} {
		s := &server{}
		s.fail(err)
		f := s.feed(t, noSink{})
		require.ErrorIs(t, f.Await(t.Context()), err)
		assert.True(t, f.State().Ended)
		assert.True(t, f.State().Refused(time.Minute))
		assert.False(t, f.State().Refused(0), "after a while it is worth another try")
		assert.EqualValues(t, 1, s.tries.Load())
	}
}

// One that may not watch is asked again after a while, if its user wants that, until it is ended.
func TestFeed_beginsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forbidden := apierrors.NewForbidden(widgets, "", errors.New("no"))
		s := &server{}
		s.fail(forbidden)
		f := New(s.source(), noSink{}, toRevision)
		f.Retry(time.Minute)
		f.Start(t.Context())
		defer f.End()
		after := func(d time.Duration) State {
			time.Sleep(d)
			synctest.Wait()
			return f.State()
		}
		require.True(t, after(time.Second).Ended)
		require.ErrorIs(t, f.Await(t.Context()), forbidden, "no caller is kept waiting")
		require.True(t, after(time.Minute).Ended, "it was refused again")
		assert.EqualValues(t, 2, s.tries.Load())
		s.err.Store(nil)
		assert.True(t, after(time.Minute).Synced)
		s.fail(forbidden)
		f.End()
		tries := s.tries.Load()
		after(time.Hour)
		assert.Equal(t, tries, s.tries.Load())
	})
}

// One that is ended while it rests does not begin again.
func TestFeed_endsWhileItRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		s.fail(apierrors.NewForbidden(widgets, "", errors.New("no")))
		f := New(s.source(), noSink{}, toRevision)
		f.Retry(time.Minute)
		f.Start(t.Context())
		synctest.Wait()
		f.End()
		time.Sleep(time.Hour)
		assert.EqualValues(t, 1, s.tries.Load())
		assert.True(t, f.State().Ended)
	})
}

// A feed that gives up leaves nothing behind in the context that it was started with.
func TestFeed_endsItsContextWhereItGivesUp(t *testing.T) {
	s := &server{}
	s.fail(apierrors.NewForbidden(widgets, "", errors.New("no")))
	f := New(s.source(), noSink{}, toRevision)
	f.Start(t.Context())
	require.Error(t, f.Await(t.Context()))
	require.True(t, f.State().Ended)
	env.Receive(t, (*s.asked.Load()).Done(), "the context of the feed has not ended")
}

func TestFeed_givesUpWhatIsNotServed(t *testing.T) {
	s := &server{}
	s.fail(notServed())
	f := s.feed(t, noSink{})
	for !f.State().Ended {
		require.True(t, IsKindNotFound(f.Await(t.Context())))
	}
	assert.EqualValues(t, maxNotFound, s.tries.Load())
	assert.False(t, f.State().Refused(time.Hour))
}

// Who needs the watch does not wait for the next try: there is one at once.
func TestFeed_isWokenUp(t *testing.T) {
	s := &server{}
	s.fail(errors.New("connection refused"))
	f := s.feed(t, noSink{})
	for range 12 { // by itself, this many tries would take minutes
		require.ErrorContains(t, f.Await(t.Context()), "connection refused")
	}
	assert.False(t, f.State().Ended)
	s.err.Store(nil)
	for f.Await(t.Context()) != nil {
		continue // a try that had begun before
	}
	assert.True(t, f.State().Synced)
	assert.NoError(t, f.State().Err)
}

func TestFeed_awaitEndsWithContext(t *testing.T) {
	block := make(chan struct{})
	defer close(block)
	f := New(selecting("", "",
		func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return nil, errors.New("not reached")
		},
		func(context.Context, metav1.ListOptions) (apiwatch.Interface, error) {
			<-block
			return nil, errors.New("too late")
		}), noSink{}, toRevision)
	f.Start(t.Context())
	defer f.End()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(assert.AnError)
	require.ErrorIs(t, f.Await(ctx), assert.AnError)
}
