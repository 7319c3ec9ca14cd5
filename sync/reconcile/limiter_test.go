package reconcile_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"waybill.dev/waybill/sync/reconcile"
)

// After an outage, however long, what could not be written is tried again within seconds.
func TestLimiter_isBounded(t *testing.T) {
	limiter := reconcile.NewLimiter()
	a := ctrl.Request{NamespacedName: types.NamespacedName{Name: "a"}}
	within := func(least, delay time.Duration) {
		t.Helper()
		assert.GreaterOrEqual(t, delay, least)
		assert.LessOrEqual(t, delay, least*6/5)
	}
	for least := 100 * time.Millisecond; least < 15*time.Second; least *= 2 {
		within(least, limiter.When(a))
	}
	for range 1000 {
		within(15*time.Second, limiter.When(a))
	}
	within(100*time.Millisecond, limiter.When(ctrl.Request{}))
	limiter.Forget(a)
	within(100*time.Millisecond, limiter.When(a))
}
