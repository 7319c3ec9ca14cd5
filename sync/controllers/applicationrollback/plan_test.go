package applicationrollback_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env/volumes"
)

// faulty is a client for which reading a PersistentVolume fails once.
type faulty struct {
	some

	failed *atomic.Bool
}

func (f *faulty) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if _, is := obj.(*corev1.PersistentVolume); is && f.failed.CompareAndSwap(false, true) {
		return apierrors.NewServiceUnavailable("once")
	}
	return f.some.Get(ctx, key, obj, opts...)
}

// C22: what a rollback could not find out when it planned is found out the next time: it does not go on without the
// volumes.
func TestRollback_plansAllOfIt(t *testing.T) {
	t.Parallel()
	w := newIdleWorld(t)
	aparts.Store(w.Namespace, true)
	failed := &atomic.Bool{}
	w.start(nil, func(c client.Client) client.Client {
		return &faulty{some{c, func(ns string) bool { return ns == w.Namespace }}, failed}
	})
	w.install(volumes.ImmediateClass)
	w.write(before)
	w.snapshot("one")
	w.write(after)
	r := w.rollback("back", "one")
	w.Create(r)
	w.awaitPhase(r, v1alpha1.RollbackCompleted)
	require.True(t, failed.Load())
	assert.Len(t, r.Status.Volumes, 1)
	w.requireState(before)
}
