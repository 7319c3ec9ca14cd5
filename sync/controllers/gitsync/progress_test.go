package gitsync_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

// P6: from the first write on, Ready says what is done; then how far it is, and that its time is over.
func TestGitSync_saysHowFarItIs(t *testing.T) {
	w := newWorld(t)
	held := newHold(t, "configmaps/c")
	w.addHeldClusters(map[string]*hold{"berlin": held}, "berlin")
	files := map[string]string{}
	for _, name := range []string{"a", "b", "c"} {
		files[name+".yaml"] = configMapIn(w.Namespace, name, "one")
	}
	commit := w.commit(files)
	gs := w.sync(func(s *v1alpha1.GitSyncSpec) {
		in("pool", "berlin")(s)
		s.Timeout = metav1.Duration{Duration: 10 * time.Second}
	})
	env.Receive(t, held.asked, "nothing is delivered")
	require.NoError(t, w.Client.Get(t.Context(), client.ObjectKeyFromObject(gs), gs))
	ready := conditions.Get(gs, v1alpha1.ReadyCondition)
	require.NotNil(t, ready, "there is no Ready while something is applied")
	assert.Equal(t, metav1.ConditionUnknown, ready.Status)
	assert.Equal(t, v1alpha1.ProgressingReason, ready.Reason)
	assert.True(t, strings.HasPrefix(ready.Message, "applying ") && strings.HasSuffix(ready.Message, commit+": 3 objects"), ready.Message)

	says := func(status metav1.ConditionStatus, part string) {
		t.Helper()
		hub.Await(w.World, gs, "Ready does not say "+part, func(gs *v1alpha1.GitSync) bool {
			ready := conditions.Get(gs, v1alpha1.ReadyCondition)
			return ready.Status == status && strings.Contains(ready.Message, part)
		})
	}
	says(metav1.ConditionUnknown, commit+": 2 of 3 objects in 1 cluster")
	says(metav1.ConditionFalse, "cluster berlin: applying took longer than spec.timeout (10s): 2 of 3 objects are applied, and the next attempt continues from there")
	held.release()
	hub.AwaitReady(w.World, gs)
}
