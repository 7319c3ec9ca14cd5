package release_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"waybill.dev/waybill/sync/deliver/release"
)

// cutOff returns a context and a target that end for good when a Job is made, as they do for a process
// that is killed while a hook runs: not even how that ended is recorded.
func (w *world) cutOff() (context.Context, *target) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	w.Cleanup(cancel)
	var cut atomic.Bool
	through := w.through(func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		if cut.Load() {
			return nil, errors.New("cut off")
		}
		return next.RoundTrip(req)
	})
	jobs, err := w.client.BatchV1().Jobs(w.namespace).Watch(ctx, metav1.ListOptions{})
	require.NoError(w, err)
	go func() {
		defer jobs.Stop()
		select {
		case <-jobs.ResultChan():
		case <-ctx.Done():
		}
		cut.Store(true)
		cancel()
	}()
	return ctx, through
}

// through returns a target whose requests pass through send.
func (w *world) through(send func(*http.Request, http.RoundTripper) (*http.Response, error)) *target {
	config := rest.CopyConfig(w.target.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) { return send(req, next) })
	})
	return &target{config: config, discovery: w.target.discovery, mapper: w.target.mapper}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// rolledBack installs a chart twice whose hook is run by a rollback, and gives the second revision up.
func (w *world) rolledBack(ctx context.Context, t release.Target, v values) (release.Desired, error) {
	w.Helper()
	w.ensure(w.desired("hooked", v))
	d := w.desired("hooked", v)
	d.ChartDigest = "sha256:next"
	w.ensure(d)
	result, err := w.engine.Rollback(ctx, t, w.identity("hooked"), release.Options{}, release.Verdict{Why: "not healthy"})
	if result.Release.Name != "" {
		w.known["hooked"] = result.Release
	}
	return d, err
}

// K47, C54: a rollback of our own that was broken off is not another client's.
func TestEnsure_recoversARollbackThatWasBrokenOff(t *testing.T) {
	w := newWorld(t)
	ctx, target := w.cutOff()
	d, err := w.rolledBack(ctx, target, values{"events": "pre-rollback"})
	require.Error(t, err)
	require.Equal(t, []string{"1 superseded", "2 failed", "3 pending-rollback"}, w.revisions("hooked"))

	result := w.ensure(d)
	assert.Equal(t, release.ActionUpgrade, result.Action)
	assert.Equal(t, []string{"1 superseded", "2 failed", "3 failed", "4 deployed"}, w.revisions("hooked"))
}

// Helm leaves a rollback pending whose hook failed.
func TestRollback_whoseHookFailsHasFailed(t *testing.T) {
	for _, event := range []string{"pre-rollback", "post-rollback"} {
		t.Run(event, func(t *testing.T) {
			w := newWorld(t)
			d, err := w.rolledBack(t.Context(), w.target, values{"events": event, "fail": true})
			assert.Equal(t, release.ReasonHook, release.ReasonOf(err))
			assert.Equal(t, "failed", w.known["hooked"].Status)
			assert.Empty(t, w.known["hooked"].Digest, "it is none of what was wanted")
			assert.Equal(t, []string{"1 superseded", "2 failed", "3 failed"}, w.revisions("hooked"))
			assert.Equal(t, release.ActionUpgrade, w.ensure(d).Action)
		})
	}
}
