package apply

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// server answers a feed: with err as long as that is set.
type server struct {
	tries atomic.Int64
	err   atomic.Pointer[error]
}

func (s *server) fail(err error) { s.err.Store(&err) }

func (s *server) feed(t *testing.T, out sink) *feed {
	t.Helper()
	answer := func() error {
		s.tries.Add(1)
		if err := s.err.Load(); err != nil {
			return *err
		}
		return nil
	}
	list := func(context.Context, metav1.ListOptions) (runtime.Object, error) {
		return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, answer()
	}
	watchFunc := func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		if o.SendInitialEvents != nil {
			return nil, apierrors.NewInvalid(schema.GroupKind{}, "", nil) // as a server that knows no streaming lists
		}
		if err := answer(); err != nil {
			return nil, err
		}
		return watch.NewFake(), nil
	}
	f := newFeed(everywhere, selecting("", "", list, watchFunc), out)
	f.start(t.Context())
	t.Cleanup(f.end)
	return f
}

type noSink struct{}

func (noSink) put(*feed, *observed)               {}
func (noSink) drop(*feed, *observed)              {}
func (noSink) replace(*feed, []*observed, string) {}

var widgets = schema.GroupResource{Group: "example.com", Resource: "widgets"}

func notServed() error {
	return apierrors.NewGenericServerResponse(404, "list", widgets, "", "404 page not found", 0, true)
}

func TestFeed_syncs(t *testing.T) {
	f := new(server).feed(t, noSink{})
	require.NoError(t, f.await(t.Context()))
	assert.True(t, f.synced())
	f.end()
	require.ErrorIs(t, f.await(t.Context()), errFeedStopped)
}

// C37: one who may not watch is not asked again and again.
func TestFeed_givesUpWithoutRights(t *testing.T) {
	for _, err := range []error{apierrors.NewForbidden(widgets, "", errors.New("no")), apierrors.NewMethodNotSupported(widgets, "watch")} {
		s := &server{}
		s.fail(err)
		f := s.feed(t, noSink{})
		require.ErrorIs(t, f.await(t.Context()), err)
		assert.True(t, f.ended())
		assert.True(t, f.refused(time.Minute))
		assert.False(t, f.refused(0), "after a while it is worth another try")
		assert.EqualValues(t, 1, s.tries.Load())
	}
}

func TestFeed_givesUpWhatIsNotServed(t *testing.T) {
	s := &server{}
	s.fail(notServed())
	f := s.feed(t, noSink{})
	for !f.ended() {
		require.True(t, isKindNotFound(f.await(t.Context())))
	}
	assert.EqualValues(t, maxNotFound, s.tries.Load())
	assert.False(t, f.refused(time.Hour))
}

// Who needs the watch does not wait for the next try: there is one at once.
func TestFeed_isWokenUp(t *testing.T) {
	s := &server{}
	s.fail(errors.New("connection refused"))
	f := s.feed(t, noSink{})
	for range 12 { // by itself, this many tries would take minutes
		require.ErrorContains(t, f.await(t.Context()), "connection refused")
	}
	assert.False(t, f.ended())
	s.err.Store(nil)
	for f.await(t.Context()) != nil {
		continue // a try that had begun before
	}
	assert.True(t, f.synced())
	assert.NoError(t, f.failure())
}

func TestFeed_awaitEndsWithContext(t *testing.T) {
	block := make(chan struct{})
	defer close(block)
	f := newFeed(everywhere, selecting("", "",
		func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return nil, errors.New("not reached")
		},
		func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			<-block
			return nil, errors.New("too late")
		}), noSink{})
	f.start(t.Context())
	defer f.end()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(assert.AnError)
	require.ErrorIs(t, f.await(ctx), assert.AnError)
}
