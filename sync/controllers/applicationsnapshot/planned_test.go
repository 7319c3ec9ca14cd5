package applicationsnapshot_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// S94, S95: what becomes of a HookAction once the application may be quiesced does not keep it quiesced.
func TestSnapshot_releasesAsPlanned(t *testing.T) {
	for name, between := range map[string]func(w *world, unlock *v1alpha1.HookAction){
		"the HookAction is deleted": func(w *world, unlock *v1alpha1.HookAction) {
			require.NoError(w.T, w.Client.Delete(w.T.Context(), unlock))
		},
		"the HookAction is changed": func(w *world, unlock *v1alpha1.HookAction) {
			hub.Change(w.World, unlock, func(a *v1alpha1.HookAction) { a.Spec.Action.Exec.Command = []string{"false"} })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.application("data")
			w.action("lock", "echo lock >>data/log; while ! test -e data/go; do sleep 0.1; done", "")
			s := w.take()
			require.True(t, w.Eventually(func() bool { return w.sh("db-0", "cat data/log || true") == "lock" }))
			between(w, &v1alpha1.HookAction{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "unlock"}})
			w.sh("db-0", "touch data/go")
			hub.AwaitReady(w.World, s)
			assert.Equal(t, "lock unlock", w.sh("db-0", "cat data/log"))
			assert.Empty(t, s.Status.Plan.PostActions, "they are of no use any more")
		})
	}
}
