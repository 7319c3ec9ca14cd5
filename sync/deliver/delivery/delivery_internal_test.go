package delivery

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/reconcile"
)

// owned is a delivery to a cluster that can be used, and how often its owner was enqueued.
type owned struct {
	*Delivery
	woken atomic.Int32
}

// newOwned returns one in a bubble, which ends with the test.
func newOwned(t *testing.T, lookEvery time.Duration) *owned {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	o := &owned{}
	pool := NewPool(ctx, Options{
		Width:     1,
		Wake:      func(apply.Owner) { o.woken.Add(1) },
		Backoff:   reconcile.NewKernel(time.Second, time.Minute).Backoff,
		LookEvery: lookEvery,
	})
	o.Delivery = pool.New(apply.Owner{Name: "apps"})
	o.Delivery.cluster, o.Delivery.applier = &cluster.Cluster{}, &apply.Applier{}
	return o
}

// pass is a pass of the owner that wants something.
func (o *owned) pass(w Want) State {
	synctest.Wait()
	o.woken.Store(0)
	w.Timeout = time.Hour
	if o.Look(); w.Work == nil {
		w.Work = func(context.Context) apply.Result { return apply.Result{} }
	}
	s := o.Set(w)
	synctest.Wait()
	return s
}

func returns(r apply.Result) func(context.Context) apply.Result {
	return func(context.Context) apply.Result { return r }
}

func TestDelivery_deliversOnceAndWakesItsOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwned(t, 0)
		assert.Equal(t, New, o.Look().Phase)
		assert.True(t, o.pass(Want{Digest: "one"}).Busy(), "its turn may come at once")
		assert.EqualValues(t, 1, o.woken.Load(), "the end of the job is an event")

		s := o.Look()
		assert.Equal(t, Delivered, s.Phase)
		assert.Equal(t, "one", s.Digest)
		assert.True(t, s.News && s.Ended && s.Clean())
		assert.False(t, o.Look().News, "once")
		assert.Equal(t, Delivered, o.pass(Want{Digest: "one"}).Phase, "there is nothing to do")
		assert.Zero(t, o.woken.Load())
		assert.True(t, o.Due(Want{Digest: "two"}))
		assert.Equal(t, Delivered, o.Set(Want{Digest: "two"}).Phase, "what is to be done is not known yet")
	})
}

// What is wanted by now does not wait for another event than the end of the job, whose result counts.
func TestDelivery_isOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwned(t, 0)
		hold := make(chan struct{})
		o.pass(Want{Digest: "one", Work: func(context.Context) apply.Result {
			<-hold
			return apply.Result{Changes: []apply.Change{{Action: apply.Created}}}
		}})
		assert.Equal(t, Working, o.pass(Want{Digest: "two"}).Phase)
		close(hold)
		synctest.Wait()
		s := o.pass(Want{Digest: "two"})
		assert.True(t, s.Busy())
		assert.Equal(t, "one", s.Digest)
		assert.True(t, s.News)
		assert.Len(t, s.Result.Changes, 1)
		s = o.pass(Want{Digest: "two"})
		assert.Equal(t, Delivered, s.Phase)
		assert.Equal(t, "two", s.Digest)
	})
}

func TestDelivery_triesAgainWhatFailed(t *testing.T) {
	for reason, result := range map[string]apply.Result{
		"what was refused may be let through by now": {Problems: []manifest.Problem{{Reason: apply.ReasonRefused}}},
		"the cluster may answer by now":              {Err: errors.New("lost")},
	} {
		synctest.Test(t, func(t *testing.T) { triesAgain(t, Want{Digest: "one", Work: returns(result)}, reason) })
	}
}

func triesAgain(t *testing.T, failing Want, reason string) {
	o := newOwned(t, 0)
	for _, pause := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		o.pass(failing)
		assert.Equal(t, Failed, o.pass(failing).Phase)
		time.Sleep(pause - time.Millisecond)
		assert.Equal(t, Failed, o.pass(failing).Phase, "a pass for another reason is too early")
		time.Sleep(time.Millisecond)
		synctest.Wait()
		assert.EqualValues(t, 1, o.woken.Load(), reason)
	}
	o.pass(failing)
	o.pass(failing)
	o.Retry()
	assert.True(t, o.Due(failing), reason)
	assert.True(t, o.pass(failing).Busy())
	o.pass(failing)
	time.Sleep(time.Second)
	synctest.Wait()
	assert.EqualValues(t, 1, o.woken.Load(), "the back-off begins anew")

	o.pass(failing)
	o.pass(failing)
	another := Want{Digest: "two", Work: failing.Work}
	o.pass(another)
	o.pass(another)
	time.Sleep(time.Second)
	synctest.Wait()
	assert.EqualValues(t, 1, o.woken.Load(), "what is wanted now is tried anew")
}

func TestDelivery_waitsForWhatIsAnnounced(t *testing.T) {
	id := manifest.ID{Version: "v1", Kind: "ConfigMap", Namespace: "late", Name: "a"}
	for reason, result := range map[string]apply.Result{
		"its kind is awaited":    {Waiting: []manifest.ID{id}, Problems: []manifest.Problem{{ID: id, Reason: apply.ReasonKindNotFound}}},
		"only a person can help": {Err: reconcile.Stalled(v1alpha1.InvalidSpecReason, "it is wrong")},
	} {
		synctest.Test(t, func(t *testing.T) {
			o := newOwned(t, 0)
			want := Want{Digest: "one", Work: returns(result)}
			o.pass(want)
			assert.Equal(t, Failed, o.pass(want).Phase, reason)
			time.Sleep(time.Hour)
			synctest.Wait()
			assert.Zero(t, o.woken.Load(), reason)
		})
	}
}

// A change that was notified while a job ran is handled by the next pass: the result comes first.
func TestDelivery_putsDriftRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwned(t, 0)
		v := &view{}
		v.users.Store(o.owner, o.Delivery)
		want := Want{Digest: "one", Work: func(context.Context) apply.Result {
			o.pool.tell(v, o.owner)
			return apply.Result{}
		}}
		o.pass(want)
		assert.EqualValues(t, 2, o.woken.Load())
		assert.Equal(t, Delivered, o.pass(want).Phase)
		assert.EqualValues(t, 1, o.woken.Load(), "once more, for the change")
		assert.True(t, o.pass(Want{Digest: "one"}).Busy())
		assert.Equal(t, Delivered, o.pass(want).Phase, "it is corrected once")
		o.pool.tell(v, apply.Owner{Name: "gone"})
	})
}

// An object that others change again and again is corrected ever more seldom, and that is reported.
func TestDelivery_putsOffWhatIsContested(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwned(t, 0)
		id := manifest.ID{Version: "v1", Kind: "ConfigMap", Namespace: "team", Name: "a"}
		corrected := returns(apply.Result{Changes: []apply.Change{{ID: id, Action: apply.Corrected}}})
		for i := range 4 {
			o.pass(Want{Digest: fmt.Sprint(i), Work: corrected})
		}
		s := o.pass(Want{Digest: "3"})
		assert.Equal(t, Contested, s.Phase)
		assert.Equal(t, []string{id.String()}, s.Contested)
		o.drifted, o.drift = true, []manifest.ID{id}
		assert.False(t, o.Due(Want{Digest: "3"}), "it has to wait")
		o.settle(time.Now())
		time.Sleep(time.Second)
		synctest.Wait()
		assert.EqualValues(t, 1, o.woken.Load())
		assert.True(t, o.Due(Want{Digest: "3"}))
		o.drifted = false
		o.settle(time.Now())
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		assert.EqualValues(t, 2, o.woken.Load(), "the owner says that there is peace")
		assert.Equal(t, Delivered, o.pass(Want{Digest: "3"}).Phase)
	})
}

func TestDelivery_dropsTheJobInALostCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwned(t, 0)
		lost := errors.New("it does not answer")
		assert.False(t, o.Lose(lost), "there is no job")
		assert.False(t, o.Due(Want{Digest: "one"}))
		o.Use(o.cluster, o.cluster)
		o.Look()
		declared := []manifest.ID{{Version: "v1", Kind: "ConfigMap", Name: "a"}}
		end := make(chan struct{})
		o.pass(Want{Digest: "one", Work: func(ctx context.Context) apply.Result {
			o.Declare(declared)
			<-ctx.Done()
			<-end
			return apply.Result{Err: ctx.Err()}
		}})
		assert.True(t, o.Lose(lost))
		assert.Equal(t, Unavailable, o.state.Phase)
		require.ErrorIs(t, o.state.Lost, lost)
		assert.Equal(t, declared, o.Declared(nil), "may be there all the same")

		o.Use(o.cluster, o.cluster)
		assert.Equal(t, Queued, o.pass(Want{Digest: "one"}).Phase, "one job at a time")
		assert.Zero(t, o.woken.Load())
		close(end)
		synctest.Wait()
		assert.EqualValues(t, 1, o.woken.Load())
		s := o.pass(Want{Digest: "one"})
		assert.True(t, s.Busy())
		assert.False(t, s.News, "how the dropped job failed is of no interest")
		assert.Equal(t, Delivered, o.pass(Want{Digest: "one"}).Phase)
	})
}

// What takes long is reported: that a job waits for others, and how far it is.
func TestDelivery_tellsWhatTakesLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwned(t, 0)
		first := o.pool.New(apply.Owner{Name: "first"})
		first.cluster, first.applier = o.cluster, o.applier
		hold := make(chan struct{})
		hang := func(context.Context) apply.Result { <-hold; return apply.Result{} }
		first.Look()
		first.Set(Want{Digest: "one", Work: hang, Timeout: time.Hour})
		synctest.Wait()

		o.pass(Want{Digest: "one", Work: hang})
		time.Sleep(turnPatience - time.Millisecond)
		assert.False(t, o.Look().Overdue)
		o.woken.Store(0)
		time.Sleep(time.Millisecond)
		synctest.Wait()
		assert.Positive(t, o.woken.Load())
		s := o.Look()
		assert.Equal(t, Queued, s.Phase)
		assert.True(t, s.Overdue && !s.Slow)

		close(hold)
		synctest.Wait()
		hold = make(chan struct{})
		first.Look()
		o.Look()
		o.pass(Want{Digest: "two", Work: hang})
		time.Sleep(4 * time.Second)
		assert.False(t, o.Look().Slow, "it may end soon")
		time.Sleep(2 * time.Second)
		s = o.Look()
		assert.Equal(t, Working, s.Phase)
		assert.True(t, s.Slow && !s.Overdue)
		close(hold)
	})
}

// A kind of an aggregated API server comes without an event: it is looked for, ever more seldom.
func TestDelivery_looksForKindsThatNothingDefines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwned(t, time.Minute)
		var pauses []time.Duration
		absent := Want{Digest: "one", Work: returns(apply.Result{Unannounced: true})}
		look := func() {
			began := time.Now()
			for o.woken.Store(0); o.woken.Load() == 0; {
				time.Sleep(time.Minute)
				synctest.Wait()
			}
			pauses = append(pauses, time.Since(began))
		}
		for range 12 {
			o.pass(absent)
			o.pass(absent)
			look()
		}
		minutes := func(n int) time.Duration { return time.Duration(n) * time.Minute }
		assert.Equal(t, []time.Duration{minutes(2), minutes(4), minutes(8), minutes(16), minutes(30), minutes(30)}, pauses[:6])
		assert.Equal(t, minutes(30), pauses[11])
		o.pass(Want{Digest: "one"})
		o.pass(absent)
		o.pass(Want{Digest: "two", Work: absent.Work})
		o.pass(Want{Digest: "two", Work: absent.Work})
		look()
		assert.Equal(t, minutes(2), pauses[12], "it was there")
	})
}

func TestDelivery_looksAtWhatCannotBeWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwned(t, time.Minute)
		unseen := Want{Digest: "one", Work: returns(apply.Result{Unseen: true})}
		o.pass(unseen)
		o.pass(unseen)
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.EqualValues(t, 1, o.woken.Load())
		assert.True(t, o.Due(unseen))
	})
	synctest.Test(t, func(t *testing.T) {
		o := newOwned(t, 0)
		unseen := Want{Digest: "one", Work: returns(apply.Result{Unseen: true})}
		o.pass(unseen)
		o.pass(unseen)
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Zero(t, o.woken.Load())
		assert.False(t, o.Due(unseen), "the owner says when")
		unseen.LookedAt = time.Now()
		assert.True(t, o.Due(unseen))
		o.pass(unseen)
		assert.False(t, o.Due(unseen), "once")
	})
}

func TestDelivery_repeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwned(t, 0)
		want := Want{Digest: "delete", Every: time.Minute}
		o.pass(want)
		assert.Equal(t, Delivered, o.pass(want).Phase)
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.EqualValues(t, 1, o.woken.Load())
		assert.True(t, o.pass(want).Busy())
	})
}

func TestDelivery_survivesAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwned(t, 0)
		o.pass(Want{Digest: "one", Work: func(context.Context) apply.Result { panic("broken") }})
		s := o.Look()
		assert.Equal(t, Failed, s.Phase)
		assert.ErrorContains(t, s.Result.Err, "broken")
	})
}
