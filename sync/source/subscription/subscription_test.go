package subscription_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/reconcile"
	"waybill.dev/waybill/sync/source/subscription"
)

// owner is one with a subscription, in a bubble.
type owner struct {
	subscription.Subscription[string, string]
	woken atomic.Int32
	// asked counts the attempts that have begun.
	asked atomic.Int32
	// says is what the source does; it answers "main" by default.
	says func(context.Context) (string, error)
}

func newOwner(t *testing.T) *owner {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	o := &owner{says: func(context.Context) (string, error) { return "main", nil }}
	o.Subscription = subscription.NewPool[string, string](ctx, subscription.Options[string]{
		Width:   1,
		Wake:    func(string) { o.woken.Add(1) },
		Backoff: reconcile.NewKernel(time.Second, time.Minute).Backoff,
	}).New("apps")
	return o
}

// pass is a reconciliation that wants to know something, after what has happened since the last.
func (o *owner) pass(q subscription.Question[string]) (subscription.State, *string) {
	synctest.Wait()
	o.woken.Store(0)
	says := o.says
	q.Ask = func(ctx context.Context) (string, error) {
		o.asked.Add(1)
		return says(ctx)
	}
	state, got := o.Set(q)
	synctest.Wait()
	return state, got
}

// finish passes until nothing is under way, and returns what that ends with.
func (o *owner) finish(t *testing.T, q subscription.Question[string]) (subscription.State, *string) {
	t.Helper()
	state, got := o.pass(q)
	if state.Phase == subscription.Asking {
		require.EqualValues(t, 1, o.woken.Load(), "the end of an attempt enqueues the owner")
		state, got = o.pass(q)
	}
	return state, got
}

func refuses(err error) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return "", err }
}

func TestSet_asksOnceUntilItIsDueAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, q := newOwner(t), subscription.Question[string]{ID: "main", Every: time.Minute}
		assert.Equal(t, subscription.Unasked, o.State().Phase)
		state, got := o.pass(q)
		assert.Equal(t, subscription.Asking, state.Phase)
		assert.Equal(t, time.Now(), state.Began)
		assert.Zero(t, state.Due, "its end is an event")
		assert.Nil(t, got)

		state, got = o.pass(q)
		require.NotNil(t, got)
		assert.Equal(t, "main", *got)
		assert.Equal(t, subscription.Answered, state.Phase)
		assert.Equal(t, time.Now(), state.Ended)
		assert.WithinRange(t, state.Due, time.Now().Add(time.Minute), time.Now().Add(66*time.Second))

		_, got = o.finish(t, q)
		assert.Nil(t, got, "an answer is returned once")
		assert.EqualValues(t, 1, o.asked.Load())
		time.Sleep(time.Until(state.Due))
		_, got = o.finish(t, q)
		assert.NotNil(t, got)
		assert.EqualValues(t, 2, o.asked.Load())
	})
}

func TestSet_isDue(t *testing.T) {
	failed := reconcile.Failed(v1alpha1.GitUnreachableReason, "unreachable")
	stalled := reconcile.Stalled(v1alpha1.InvalidSpecReason, "invalid")
	once := subscription.Question[string]{ID: "a"}
	cases := map[string]struct {
		reason string
		err    error
		after  time.Duration
		next   subscription.Question[string]
		asks   bool
	}{
		"answered":                   {"nothing has changed", nil, time.Hour, once, false},
		"another question":           {"the answer is that of another", nil, 0, subscription.Question[string]{ID: "b"}, true},
		"the answer is lacking":      {"it is wanted again", nil, 0, subscription.Question[string]{ID: "a", Lacking: true}, true},
		"failed":                     {"the back-off is not over", failed, 0, once, false},
		"failed, lacking":            {"its back-off is not over", failed, 0, subscription.Question[string]{ID: "a", Lacking: true}, false},
		"failed, over":               {"the back-off is over", failed, time.Second, once, true},
		"failed, another question":   {"it may do better", failed, 0, subscription.Question[string]{ID: "b"}, true},
		"stalled":                    {"time does not help", stalled, time.Hour, subscription.Question[string]{ID: "a", Lacking: true}, false},
		"stalled, another question":  {"a person has acted", stalled, 0, subscription.Question[string]{ID: "b"}, true},
		"another that cannot be had": {"no request is sent", nil, 0, subscription.Question[string]{ID: "b", Missing: errors.New("no Secret")}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOwner(t)
				if c.err != nil {
					o.says = refuses(c.err)
				}
				state, _ := o.finish(t, once)
				assert.Equal(t, c.err, state.Err)
				before := o.asked.Load()
				time.Sleep(c.after)
				o.pass(c.next)
				assert.Equal(t, c.asks, o.asked.Load() > before, c.reason)
			})
		})
	}
}

// What fails is asked again after ever longer pauses, but not later than it would be without a failure, and
// what another question has failed with does not count.
func TestSet_backsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, failed := newOwner(t), errors.New("unreachable")
		o.says = refuses(failed)
		q := subscription.Question[string]{ID: "a", Every: 3 * time.Second}
		for _, want := range []time.Duration{time.Second, 2 * time.Second} {
			state, got := o.finish(t, q)
			assert.Nil(t, got)
			assert.Equal(t, subscription.Failed, state.Phase)
			assert.Equal(t, want, time.Until(state.Due))
			time.Sleep(want)
		}
		state, _ := o.finish(t, q)
		assert.Less(t, time.Until(state.Due), 4*time.Second, "the interval is shorter")

		q.ID = "b"
		state, _ = o.pass(q)
		assert.Equal(t, subscription.Asking, state.Phase)
		assert.Equal(t, failed, state.Err, "it is what is known until then")
		assert.NoError(t, state.ErrOf("b"))
		state, _ = o.pass(q)
		assert.Equal(t, failed, state.ErrOf("b"))
		assert.Equal(t, time.Second, time.Until(state.Due))
	})
}

// That a source cannot be asked is a failure without a request, and ends the one that is under way.
func TestSet_withoutWhatTheSourceAsksFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwner(t)
		o.says = hangs
		o.pass(subscription.Question[string]{ID: "a"})
		missing := errors.New("no Secret")
		state, got := o.pass(subscription.Question[string]{ID: "b", Missing: missing})
		assert.Nil(t, got)
		assert.Equal(t, subscription.Failed, state.Phase)
		assert.Equal(t, missing, state.Err)
		assert.Equal(t, time.Second, time.Until(state.Due))
		assert.EqualValues(t, 1, o.woken.Load(), "the attempt has ended")
	})
}

// An attempt that hangs does not keep the owner from asking something else.
func TestSet_dropsAnAttemptAtAnotherQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwner(t)
		o.says = hangs
		first, _ := o.pass(subscription.Question[string]{ID: "a"})
		require.Equal(t, subscription.Asking, first.Phase)
		time.Sleep(time.Second)

		o.says = func(context.Context) (string, error) { return "of b", nil }
		q := subscription.Question[string]{ID: "b"}
		state, _ := o.pass(q)
		assert.Equal(t, subscription.Asking, state.Phase)
		assert.Equal(t, time.Now(), state.Began, "it is another attempt")
		assert.EqualValues(t, 1, o.woken.Load(), "the attempt at the first question has ended")
		state, _ = o.pass(q)
		assert.Equal(t, subscription.Asking, state.Phase)
		_, got := o.pass(q)
		require.NotNil(t, got)
		assert.Equal(t, "of b", *got)
		assert.EqualValues(t, 2, o.asked.Load())
	})
}

func hangs(ctx context.Context) (string, error) {
	<-ctx.Done()
	return "", ctx.Err()
}

// An answer that turns out to be of no use is a failure.
func TestFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, q := newOwner(t), subscription.Question[string]{ID: "a", Every: time.Hour}
		o.finish(t, q)
		unfit := errors.New("it cannot be rendered")
		state := o.Fail(unfit)
		assert.Equal(t, subscription.Failed, state.Phase)
		assert.Equal(t, unfit, state.ErrOf("a"))
		assert.Equal(t, time.Second, time.Until(state.Due))
		time.Sleep(time.Second)
		state, got := o.finish(t, q)
		assert.NotNil(t, got)
		assert.NoError(t, state.Err)
	})
}

// An owner that rests is not enqueued by time, and the answer that it did not wait for is not taken for one to a
// later Set.
func TestRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, q := newOwner(t), subscription.Question[string]{ID: "a", Every: time.Minute}
		o.finish(t, q)
		state := o.Rest()
		assert.Equal(t, subscription.Answered, state.Phase)
		assert.Zero(t, state.Due)
		state, _ = o.finish(t, q)
		assert.Positive(t, time.Until(state.Due), "it is due as if it had not rested")

		time.Sleep(time.Until(state.Due))
		o.pass(q) // which has ended
		o.Rest()
		o.says = func(context.Context) (string, error) { return "newer", nil }
		_, got := o.finish(t, q)
		require.NotNil(t, got)
		assert.Equal(t, "newer", *got)

		o.says = hangs
		q.ID = "b"
		o.pass(q)
		assert.Equal(t, subscription.Answered, o.Rest().Phase)
		synctest.Wait()
		assert.EqualValues(t, 1, o.woken.Load(), "it has ended")
	})
}

// P6: the owner is enqueued when an attempt takes long, once.
func TestState_slow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, q, answer := newOwner(t), subscription.Question[string]{ID: "a"}, make(chan struct{})
		o.says = func(context.Context) (string, error) { <-answer; return "main", nil }
		state, _ := o.pass(q)
		assert.False(t, state.Slow)
		began := state.Began
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.EqualValues(t, 1, o.woken.Load())
		state, _ = o.pass(q)
		assert.True(t, state.Slow)
		assert.Equal(t, began, state.Began)
		close(answer)
		state, got := o.pass(q)
		assert.NotNil(t, got)
		assert.False(t, state.Slow)
	})
}

// A panic is a failure of its question, and a state without an attempt needs no pool.
func TestSet_survivesAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwner(t)
		o.says = func(context.Context) (string, error) { panic("unexpected") }
		state, _ := o.finish(t, subscription.Question[string]{ID: "a"})
		assert.ErrorContains(t, state.Err, "internal error")
		var none subscription.Subscription[string, string]
		assert.Equal(t, subscription.Unasked, none.Rest().Phase)
	})
}
