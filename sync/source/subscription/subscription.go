package subscription

import (
	"context"
	"math/rand/v2"
	"time"

	"waybill.dev/waybill/sync/reconcile"
)

// Question is what an owner wants to know of a source.
type Question[A any] struct {
	// ID identifies the question: another one is due at once. It is never empty.
	ID string
	// Server identifies who is asked.
	Server string
	// Every is after how long the question is due again, and up to a tenth later, so that not all are due at
	// once; zero for never. What has failed is due again by then, however long its back-off.
	Every time.Duration
	// Lacking makes the question due now: the owner lacks its answer. What has failed still waits for its
	// back-off.
	Lacking bool
	// Missing is why the source cannot be asked, which is then what the attempt fails with; nil if it can be.
	Missing error
	// Ask asks. It runs as a job, perhaps long after Set has returned.
	Ask func(context.Context) (A, error)
}

// Phase is what a Subscription is at.
type Phase int

const (
	// Unasked: no attempt has ended yet, and none is under way.
	Unasked Phase = iota
	// Asking: an attempt is under way, or waits for its turn at the server. Its end enqueues the owner.
	Asking
	// Answered: the last attempt has succeeded.
	Answered
	// Failed: the last attempt has failed. It is repeated after a back-off, unless the error is a stalled one.
	Failed
)

// State is what a Subscription is at, as of the last Set, Fail or Rest.
type State struct {
	Phase Phase
	// ID is the question of the last attempt that has ended, Ended when that was, and Err its error; nil if it
	// has succeeded. They stay while the question is asked again.
	ID    string
	Ended time.Time
	Err   error
	// Began is when Phase became Asking; zero in any other.
	Began time.Time
	// Slow: the attempt takes long.
	Slow bool
	// Due is when to call Set again; zero if time is no reason for that.
	Due time.Time
}

// ErrOf returns the error that a question has failed with; nil if that is not the one that was last asked.
func (s State) ErrOf(id string) error {
	if s.ID != id {
		return nil
	}
	return s.Err
}

// Subscription is what one owner asks of a source. The zero value is Unasked, and cannot be Set; Pool.New returns
// one that can. It is not safe for concurrent use: there is one reconciliation of an owner at a time.
type Subscription[K comparable, A any] struct {
	pool  *Pool[K, A]
	owner K
	state State
	// asked is the ID of the question of the attempt that is under way.
	asked string
	// every is that of the last question, and retry when that is due again.
	every time.Duration
	retry reconcile.Retry
	shown *reconcile.Progress[bool]
}

// State returns the state.
func (s *Subscription[K, A]) State() State { return s.state }

// Set says what the owner wants to know, and begins an attempt if that is due. An attempt at another question is
// dropped, and the end of it enqueues the owner. Set returns the answer once, when an attempt has succeeded, and
// otherwise nil.
func (s *Subscription[K, A]) Set(q Question[A]) (State, *A) {
	s.every = q.Every
	if !s.due(q) {
		s.drop()
		return s.settle(), nil
	}
	if q.Missing != nil {
		s.drop()
		return s.end(q.ID, q.Missing), nil
	}
	if s.asked != q.ID {
		s.drop() // its answer is of no use, and may take its time
	}
	shown := s.shown
	got, ended := s.pool.jobs.Do(q.Server, s.owner, q.ID, func(ctx context.Context) attempt[A] {
		defer shown.Begin()()
		answer, err := q.Ask(ctx)
		return attempt[A]{answer: answer, err: err}
	})
	switch {
	case !ended:
		return s.asking(q.ID), nil
	case got.err != nil:
		return s.end(q.ID, got.err), nil
	default:
		return s.end(q.ID, nil), &got.answer
	}
}

// Fail says that the last answer cannot be used after all, as if the attempt had failed. It drops the attempt
// that is under way.
func (s *Subscription[K, A]) Fail(err error) State {
	s.drop()
	return s.end(s.state.ID, err)
}

// Rest says that there is nothing to ask until the next Set. It drops the attempt that is under way.
func (s *Subscription[K, A]) Rest() State {
	s.drop()
	s.settle()
	s.state.Due = time.Time{}
	return s.state
}

// due reports whether a question is to be asked now.
func (s *Subscription[K, A]) due(q Question[A]) bool {
	lacking := q.Lacking && s.state.Err == nil
	return s.state.ID != q.ID || lacking || s.retry.Due(time.Now())
}

// drop drops the attempt that is under way.
func (s *Subscription[K, A]) drop() {
	if s.state.Phase == Asking {
		s.pool.jobs.Drop(s.owner)
	}
}

// asking notes that an attempt is under way.
func (s *Subscription[K, A]) asking(id string) State {
	if s.state.Phase != Asking || s.asked != id {
		s.state.Phase, s.state.Began = Asking, time.Now()
	}
	s.asked = id
	_, s.state.Slow = s.shown.Shown()
	s.state.Due = time.Time{}
	return s.state
}

// end takes in how an attempt has ended, and sets when the question is due again.
func (s *Subscription[K, A]) end(id string, err error) State {
	if s.state.ID != id {
		s.retry = reconcile.Retry{}
	}
	s.state.ID, s.state.Err, s.state.Ended = id, err, time.Now()
	s.retry.Ended(err, s.pool.options.Backoff)
	if again := s.again(); err == nil || !again.IsZero() && again.Before(s.retry.At) { // At is zero if err is a stalled one
		s.retry.At = again
	}
	return s.settle()
}

// again returns when the last question is due again if nothing has failed; zero for never.
func (s *Subscription[K, A]) again() time.Time {
	if s.every == 0 {
		return time.Time{}
	}
	return time.Now().Add(s.every + rand.N(s.every/10+1))
}

// settle brings the state of a subscription up to date for which no attempt is under way.
func (s *Subscription[K, A]) settle() State {
	s.state.Phase, s.state.Began, s.state.Slow, s.state.Due = Answered, time.Time{}, false, s.retry.At
	switch {
	case s.state.Err != nil:
		s.state.Phase = Failed
	case s.state.ID == "":
		s.state.Phase = Unasked
	}
	return s.state
}
