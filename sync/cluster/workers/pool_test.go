package workers_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/cluster/workers"
	"waybill.dev/waybill/sync/reconcile"
)

const (
	minBackoff = time.Second
	maxBackoff = time.Minute
)

// fake is a cluster that is lost for a reason, or not.
type fake struct{ lost error }

func (f *fake) Name() types.NamespacedName {
	return types.NamespacedName{Namespace: "team", Name: "berlin"}
}

func (f *fake) Reachable() error { return f.lost }

// run runs a pool for as long as the test takes, and waits until all its goroutines wait.
func run[R any](t *testing.T, c *fake, options workers.Options[string, R]) *workers.Pool[string, R] {
	t.Helper()
	options.Name, options.MinBackoff, options.MaxBackoff = "test", minBackoff, maxBackoff
	if options.Learn == nil {
		options.Learn = func(context.Context) (map[string]R, error) { return nil, nil }
	}
	if options.Changed == nil {
		options.Changed = func(string) {}
	}
	p := workers.New(c, options)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		p.Run(ctx)
		close(ended)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		assert.Equal(t, workers.Ended, p.State())
	})
	synctest.Wait()
	return p
}

// What comes of a key says when it is worked on again, if it is not enqueued.
func TestPool_triesAgain(t *testing.T) {
	lost := &cluster.UnreachableError{}
	cases := map[string]struct {
		reason string
		lost   error
		err    error
		// runs are how often the key has been worked on after a second, and after a minute more.
		runs [2]int32
		// retried is true if Retry has it worked on.
		retried bool
	}{
		"Done":        {reason: "nothing is left to do", runs: [2]int32{1, 1}},
		"Failed":      {reason: "it backs off", err: errors.New("refused"), runs: [2]int32{2, 6}, retried: true},
		"Stalled":     {reason: "only an event makes a difference", err: reconcile.Stalled("Reason", "foreign"), runs: [2]int32{1, 1}},
		"Waiting":     {reason: "it said when", err: reconcile.Waiting("Reason", 10*time.Second, "contested"), runs: [2]int32{1, 7}, retried: true},
		"NoTime":      {reason: "it waits for an event", err: reconcile.Waiting("Reason", 0, "wait"), runs: [2]int32{1, 1}, retried: true},
		"Lost":        {reason: "nothing comes of it before the cluster is back", lost: lost, err: lost, runs: [2]int32{1, 1}, retried: true},
		"LostAndBack": {reason: "it is back before anybody noticed", err: lost, runs: [2]int32{2, 6}, retried: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var runs atomic.Int32
				p := run(t, &fake{tc.lost}, workers.Options[string, int]{Work: func(context.Context, string) (int, error) {
					runs.Add(1)
					return 0, tc.err
				}})
				p.Add("a")
				time.Sleep(minBackoff)
				synctest.Wait()
				assert.Equal(t, tc.runs[0], runs.Load(), tc.reason)
				time.Sleep(time.Minute)
				synctest.Wait()
				assert.Equal(t, tc.runs[1], runs.Load(), tc.reason)
				assert.Equal(t, tc.err, p.Result("a").Err)
				p.Retry()
				synctest.Wait()
				assert.Equal(t, tc.retried, runs.Load() > tc.runs[1], tc.reason)
			})
		})
	}
}

// No key is worked on before it is known what the cluster has; that is tried again with a back-off, and
// at once when the cluster is back.
func TestPool_learnsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		learns, works, changes := 0, 0, 0
		failure := errors.New("no answer")
		p := run(t, &fake{}, workers.Options[string, bool]{
			Learn: func(context.Context) (map[string]bool, error) {
				learns++
				return map[string]bool{"known": true}, failure
			},
			Work: func(_ context.Context, key string) (bool, error) {
				works++
				return key != "known", nil
			},
			Changed: func(string) { changes++ },
		})
		p.Add("added")
		time.Sleep(minBackoff)
		synctest.Wait()
		assert.Equal(t, 2, learns)
		p.Retry()
		synctest.Wait()
		assert.Equal(t, 3, learns)
		assert.Equal(t, workers.Learning, p.State())
		assert.Zero(t, works)
		failure = nil
		p.Retry()
		synctest.Wait()
		assert.Equal(t, workers.Working, p.State())
		assert.Equal(t, 2, works, "what was added, and what is known")
		assert.Equal(t, 2, changes, "nothing is left of what was known")
		assert.Equal(t, map[string]workers.Result[bool]{"added": {Value: true}}, p.Results())
	})
}

// The owner of a key is notified of what is new, and only of that.
func TestPool_tellsWhatHasChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told, value, failure := 0, []string{"held"}, error(nil)
		p := run(t, &fake{}, workers.Options[string, []string]{
			Work:    func(context.Context, string) ([]string, error) { return value, failure },
			Changed: func(string) { told++ },
		})
		again := func() int {
			p.Add("a")
			synctest.Wait()
			return told
		}
		assert.Equal(t, 1, again())
		value = []string{"held"}
		assert.Equal(t, 1, again(), "it is the same")
		failure = reconcile.Stalled("Reason", "foreign")
		assert.Equal(t, 2, again(), "it fails now")
		failure = reconcile.Stalled("Reason", "foreign")
		assert.Equal(t, 2, again(), "for the same reason")
		value, failure = nil, nil
		assert.Equal(t, 3, again(), "nothing is left of it")
		assert.Empty(t, p.Results(), "and nothing is kept")
	})
}

// A key that is added while it is worked on is worked on once more after that, and never by two at once.
func TestPool_oneWorkerForAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, at, release := map[string]int{}, map[string]int{}, make(chan struct{})
		guard := make(chan struct{}, 1)
		p := run(t, &fake{}, workers.Options[string, int]{Workers: 2, Work: func(_ context.Context, key string) (int, error) {
			guard <- struct{}{}
			begun[key]++
			at[key]++
			assert.Equal(t, 1, at[key])
			<-guard
			<-release
			guard <- struct{}{}
			at[key]--
			<-guard
			return 0, nil
		}})
		p.Add("a", "a", "b", "c")
		synctest.Wait()
		p.Add("a")
		synctest.Wait()
		assert.Equal(t, map[string]int{"a": 1, "b": 1}, begun, "there are two workers")
		close(release)
		synctest.Wait()
		assert.Equal(t, map[string]int{"a": 2, "b": 1, "c": 1}, begun)
	})
}

// A panic costs neither the process nor the worker.
func TestPool_survivesAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := run(t, &fake{}, workers.Options[string, int]{Work: func(_ context.Context, key string) (int, error) {
			if key == "bad" {
				panic("nil")
			}
			return 1, nil
		}})
		p.Add("bad", "good")
		synctest.Wait()
		require.ErrorContains(t, p.Result("bad").Err, "internal error: nil")
		assert.Equal(t, 1, p.Result("good").Value)
	})
}
