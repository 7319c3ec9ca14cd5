package applicationsnapshot_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env/volumes"
	"waybill.dev/waybill/test/hub"
)

// C20, C63: a Pod that starts after the pre-hooks have selected theirs writes while the volumes are cut.
func TestSnapshot_ofAPodThatStarts(t *testing.T) {
	for name, test := range map[string]struct {
		edit    func(w *world, late *corev1.Pod)
		claim   string
		message string // empty if the snapshot is taken all the same
	}{
		"with a claim of the snapshot": {
			claim: "data-db-0", message: `Pod "late" started after pre-hook "lock" had selected its Pods, and uses claims of the application`,
		},
		"with another claim": {claim: "other"},
		"of no part of the application": {
			claim: "data-db-0", edit: func(_ *world, late *corev1.Pod) { late.Labels = nil },
		},
		"that no pre-hook selects": {
			claim: "data-db-0",
			edit: func(w *world, _ *corev1.Pod) {
				w.class.PreHooks[0].PodFilter = &metav1.LabelSelector{MatchLabels: map[string]string{"statefulset.kubernetes.io/pod-name": "db-0"}}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.application("data")
			w.Create(volumes.Claim("", "other", volumes.ImmediateClass))
			w.action("lock", "echo lock >>data/log; while ! test -e data/go; do sleep 0.1; done", "")
			late := volumes.Pod(w.Namespace, "late", test.claim)
			late.Labels = map[string]string{"app": "db"}
			hub.Change(w.World, &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "db"}}, func(a *v1alpha1.Application) {
				a.Spec.Components = append(a.Spec.Components, v1alpha1.ApplicationComponent{Kind: "Pod"})
			})
			if test.edit != nil {
				test.edit(w, late)
			}
			s := w.take()
			require.True(t, w.Eventually(func() bool { return w.sh("db-0", "cat data/log || true") == "lock" }))
			w.Create(late)
			w.awaitRunning("late")
			w.sh("db-0", "touch data/go")
			if test.message == "" {
				hub.AwaitReady(w.World, s)
				assert.Equal(t, v1alpha1.ConsistencyApplication, s.Status.Consistency)
			} else {
				failure := w.awaitFailed(s)
				assert.Equal(t, v1alpha1.NotQuiescedReason, failure.Reason)
				assert.Contains(t, failure.Message, test.message)
			}
			assert.Equal(t, "lock unlock", w.sh("db-0", "cat data/log"))
		})
	}
}
