package reconcile_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"waybill.dev/waybill/sync/reconcile"
)

// What happens within the delay is one request, and one that is due now does not wait for it.
func TestWaker_gathers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
		defer queue.ShutDown()
		w := &reconcile.Waker[string]{}
		w.WakeAfter("early", time.Hour)
		require.NoError(t, w.Source().Start(t.Context(), queue))
		took := func(after time.Duration) (taken []string) {
			time.Sleep(after)
			synctest.Wait()
			for queue.Len() > 0 {
				request, _ := queue.Get()
				queue.Done(request)
				taken = append(taken, request)
			}
			return taken
		}
		assert.Equal(t, []string{"early"}, took(0), "what was asked for before the start does not wait any longer")
		for range 3 {
			w.WakeAfter("a", time.Second)
		}
		w.Wake("b")
		assert.Equal(t, []string{"b"}, took(time.Second/2))
		w.WakeAfter("a", time.Second)
		assert.Equal(t, []string{"a"}, took(time.Second/2), "a second after the first")
		assert.Empty(t, took(time.Hour))
	})
}

// What comes first is taken before what was asked for earlier.
func TestWaker_whatComesFirst(t *testing.T) {
	queue := priorityqueue.New[string]("first")
	defer queue.ShutDown()
	w := &reconcile.Waker[string]{}
	w.WakeFirst("early")
	require.NoError(t, w.Source().Start(t.Context(), queue))
	w.Wake("a")
	w.Wake("b")
	w.WakeFirst("b")
	w.WakeFirst("c")
	var taken []string
	for range 4 {
		request, _ := queue.Get()
		queue.Done(request)
		taken = append(taken, request)
	}
	assert.ElementsMatch(t, []string{"b", "c"}, taken[:2])
	assert.ElementsMatch(t, []string{"early", "a"}, taken[2:])
}
