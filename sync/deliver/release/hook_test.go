package release_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/release"
)

func (w *world) hookJob() (string, error) {
	job, err := w.client.BatchV1().Jobs(w.namespace).Get(w.Context(), "hooked-hook", metav1.GetOptions{})
	return string(job.UID), err
}

// K47, K7, C53: hooks run to their end, before and after, and carry no marks.
func TestEnsure_runsHooks(t *testing.T) {
	w := newWorld(t)
	first, said := w.desired("hooked", nil), make(chan string, 100)
	first.Doing = func(what string) { said <- what }
	w.ensure(first)
	close(said)
	var all []string
	for what := range said {
		all = append(all, what)
	}
	assert.Subset(t, all, []string{"rendering the chart", "waiting for hook Job.batch " + w.namespace + "/hooked-hook to end"}, "what takes long is said")
	assert.Empty(t, all[len(all)-1], "and not when it is over")
	job, err := w.client.BatchV1().Jobs(w.namespace).Get(t.Context(), "hooked-hook", metav1.GetOptions{})
	require.NoError(t, err)
	assert.EqualValues(t, 1, job.Status.Succeeded)
	assert.NotContains(t, job.Labels, v1alpha1.OwnerHashLabel)

	d := w.desired("hooked", nil)
	d.ChartDigest = "sha256:next"
	w.ensure(d)
	again, err := w.hookJob()
	require.NoError(t, err)
	assert.NotEqual(t, string(job.UID), again, "it ran again")

	d.Values = values{"events": "post-delete", "policy": "before-hook-creation,hook-succeeded"}
	w.ensure(d)
	_, err = w.engine.Uninstall(t.Context(), w.target, w.identity(d.Name), release.Options{}, nil)
	require.NoError(t, err)
	assert.Empty(t, w.revisions("hooked"))
}

func TestEnsure_disableHooksRunsNone(t *testing.T) {
	w := newWorld(t)
	d := w.desired("hooked", values{"fail": true})
	d.Options.DisableHooks = true
	w.ensure(d)
	_, err := w.hookJob()
	assert.True(t, apierrors.IsNotFound(err))
}

// A hook that fails, or does not end, is named, and worth another try.
func TestEnsure_namesTheHookThatFailed(t *testing.T) {
	w := newWorld(t)
	_, err := w.try(t.Context(), w.desired("hooked", values{"fail": true}))
	require.Error(t, err)
	assert.Equal(t, release.ReasonHook, release.ReasonOf(err))
	assert.False(t, release.IsTerminal(err))
	assert.Contains(t, err.Error(), "hook Job.batch "+w.namespace+"/hooked-hook: failed: BackoffLimitExceeded")
	assert.Equal(t, []string{"1 failed"}, w.revisions("hooked"))
	_, err = w.configMap("hooked")
	assert.True(t, apierrors.IsNotFound(err), "nothing is installed after a failed pre-install hook")

	w.ensure(w.desired("hooked", nil))
	assert.Equal(t, []string{"1 failed", "2 deployed"}, w.revisions("hooked"))
}

// hookTime is the time of an action whose hook never ends. What comes before the hook has to fit in.
const hookTime = 20 * time.Second

func TestEnsure_hooksHaveATimeLimit(t *testing.T) {
	w := newWorld(t)
	d := w.desired("hooked", nil)
	d.Chart.Templates[0].Data = append(d.Chart.Templates[0].Data, []byte("      nodeSelector: {no: node}\n")...)
	d.Options.Timeout = hookTime
	_, err := w.try(t.Context(), d)
	require.Error(t, err)
	assert.Equal(t, release.ReasonHook, release.ReasonOf(err))
	assert.Contains(t, err.Error(), "did not end within 20s")
	assert.Equal(t, []string{"1 failed"}, w.revisions("hooked"), "how it ended is recorded after the time was up")
}

// Undoing has a time of its own: that of the action is over.
func TestEnsure_atomicUndoesAnInstallWhoseTimeIsUp(t *testing.T) {
	w := newWorld(t)
	d := w.desired("hooked", values{"events": "post-install"})
	d.Chart.Templates[0].Data = append(d.Chart.Templates[0].Data, []byte("      nodeSelector: {no: node}\n")...)
	d.Options.Timeout, d.Options.Atomic = hookTime, true
	_, err := w.try(t.Context(), d)
	assert.Equal(t, release.ReasonHook, release.ReasonOf(err))
	assert.Contains(t, err.Error(), "and was uninstalled")
	assert.Empty(t, w.revisions("hooked"))
	_, err = w.configMap("hooked")
	assert.True(t, apierrors.IsNotFound(err))
}

// The caller can end an action that waits for a hook.
func TestEnsure_endsInTheMiddleOfAHook(t *testing.T) {
	w := newWorld(t)
	d := w.desired("hooked", nil)
	d.Chart.Templates[0].Data = append(d.Chart.Templates[0].Data, []byte("      nodeSelector: {no: node}\n")...)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		watch, err := w.client.BatchV1().Jobs(w.namespace).Watch(t.Context(), metav1.ListOptions{})
		if err == nil {
			<-watch.ResultChan()
			watch.Stop()
		}
	}()
	_, err := w.try(ctx, d)
	require.Error(t, err)
	assert.Equal(t, []string{"1 failed"}, w.revisions("hooked"))
	result := w.ensure(w.desired("hooked", nil))
	assert.Equal(t, release.ActionInstall, result.Action)
}
