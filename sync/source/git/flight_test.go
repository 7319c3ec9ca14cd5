package git

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/env"
)

// answer is one call that waits until the test lets it go.
type answer struct {
	ctx context.Context
	say chan string
}

// calls returns a function for flights.do, and its calls as they begin.
func calls() (func(context.Context) (string, error), chan answer) {
	begun := make(chan answer)
	return func(ctx context.Context) (string, error) {
		a := answer{ctx: ctx, say: make(chan string)}
		begun <- a
		select {
		case s := <-a.say:
			return s, nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}, begun
}

// ask calls do and passes on what it returns.
func ask(ctx context.Context, g *flights[string], call func(context.Context) (string, error)) chan string {
	out := make(chan string, 1)
	go func() {
		s, err := g.do(ctx, "key", call)
		if err != nil {
			s = err.Error()
		}
		out <- s
	}()
	return out
}

// waitFor lets a test go on once n callers wait for the call in that state.
func waitFor(t *testing.T, g *flights[string], in func() map[string]*flight[string], n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		f := in()["key"]
		return f != nil && f.waiting == n
	}, env.Limit, time.Millisecond)
}

func TestFlights_shareACall(t *testing.T) {
	g := newFlights[string](false)
	call, begun := calls()
	first := ask(t.Context(), g, call)
	one := <-begun
	second := ask(t.Context(), g, call)
	waitFor(t, g, func() map[string]*flight[string] { return g.running }, 2)

	one.say <- "shared"

	assert.Equal(t, "shared", <-first)
	assert.Equal(t, "shared", <-second)
}

func TestFlights_freshAnswersAreNeverOlderThanTheQuestion(t *testing.T) {
	g := newFlights[string](true)
	call, begun := calls()
	first := ask(t.Context(), g, call)
	one := <-begun
	second, third := ask(t.Context(), g, call), ask(t.Context(), g, call)
	waitFor(t, g, func() map[string]*flight[string] { return g.queued }, 2)

	one.say <- "old"
	assert.Equal(t, "old", <-first)
	two := <-begun
	two.say <- "new"

	assert.Equal(t, "new", <-second)
	assert.Equal(t, "new", <-third)
}

func TestFlights_callGoesOnWhileSomebodyWaits(t *testing.T) {
	g := newFlights[string](false)
	call, begun := calls()
	impatient, cancel := context.WithCancel(t.Context())
	first := ask(impatient, g, call)
	one := <-begun
	second := ask(t.Context(), g, call)
	waitFor(t, g, func() map[string]*flight[string] { return g.running }, 2)

	cancel()
	assert.Equal(t, context.Canceled.Error(), <-first, "the one who began it leaves")
	one.say <- "done"

	assert.Equal(t, "done", <-second)
}

func TestFlights_callEndsWhenNobodyWaits(t *testing.T) {
	for name, fresh := range map[string]bool{"Any": false, "Fresh": true} {
		t.Run(name, func(t *testing.T) {
			g := newFlights[string](fresh)
			call, begun := calls()
			ctx, cancel := context.WithCancel(t.Context())
			first := ask(ctx, g, call)
			one := <-begun

			cancel()
			<-first
			<-one.ctx.Done()
			second := ask(t.Context(), g, call)
			two := <-begun
			two.say <- "anew"

			assert.Equal(t, "anew", <-second, "a call that was given up is not joined")
		})
	}
}

func TestFlights_errorsAreShared(t *testing.T) {
	g := newFlights[string](false)
	_, err := g.do(t.Context(), "key", func(context.Context) (string, error) { return "", errors.New("no") })
	assert.EqualError(t, err, "no")
	assert.Empty(t, g.running)
}

// P13: what a stranger's repository does to a library ends one call, not the process.
func TestFlights_panicIsAnErrorOfAllWhoWait(t *testing.T) {
	g := newFlights[string](false)
	begun, crash := make(chan struct{}), make(chan struct{})
	call := func(context.Context) (string, error) {
		close(begun)
		<-crash
		panic("index out of range")
	}
	first := ask(t.Context(), g, call)
	<-begun
	second := ask(t.Context(), g, call)
	waitFor(t, g, func() map[string]*flight[string] { return g.running }, 2)

	close(crash)

	assert.Equal(t, "internal error: index out of range", <-first)
	assert.Equal(t, "internal error: index out of range", <-second)
	assert.Empty(t, g.running)
}
