package applicationsnapshot

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/api/v1alpha1"
)

// C63: a container in which it is not known whether the post-hook ran is tried for minutes, ever less often, and keeps no
// other one waiting.
func TestAttempts_backOff(t *testing.T) {
	const (
		unknown     = v1alpha1.HookRunUnknown
		pending     = v1alpha1.HookRunPending
		interrupted = v1alpha1.HookRunInterrupted
		succeeded   = v1alpha1.HookRunSucceeded
		failed      = v1alpha1.HookRunFailed
	)
	type states = []v1alpha1.HookRunState
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		runs     []states        // of a and b, then of what is left after each
		at       []time.Duration // when each ends
		left     []string
		wait     time.Duration // from the last of them on
		failures []string
	}{
		"the others come first, at once":               {runs: []states{{unknown, pending}}, at: []time.Duration{0}, left: []string{"b", "a"}},
		"then it waits":                                {runs: []states{{unknown, pending}, {succeeded, unknown}}, at: []time.Duration{0, time.Second}, left: []string{"a"}, wait: time.Second},
		"both":                                         {runs: []states{{unknown, pending}, {unknown, pending}}, at: []time.Duration{0, 0}, left: []string{"a", "b"}, wait: time.Second},
		"longer the next time":                         {runs: []states{{succeeded, unknown}, {unknown}, {unknown}}, at: []time.Duration{0, time.Second, 3 * time.Second}, left: []string{"b"}, wait: 4 * time.Second},
		"not for ever":                                 {runs: []states{{succeeded, unknown}, {unknown}}, at: []time.Duration{0, mostUnknown}, failures: []string{"b"}},
		"what failed is not run again":                 {runs: []states{{failed, pending}}, at: []time.Duration{0}, left: []string{"b"}, failures: []string{"a"}},
		"what was interrupted is run again at once":    {runs: []states{{interrupted, pending}}, at: []time.Duration{0}, left: []string{"b", "a"}},
		"what has succeeded in the end has not failed": {runs: []states{{succeeded, unknown}, {succeeded}}, at: []time.Duration{0, time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			container := func(name string) v1alpha1.QuiescedContainer {
				return v1alpha1.QuiescedContainer{HookPod: v1alpha1.HookPod{Name: name, Container: "main"}}
			}
			a := newAttempts([]v1alpha1.QuiescedContainer{container("a"), container("b")})
			failures := map[string]v1alpha1.HookRun{}
			var ended time.Time
			for i, states := range test.runs {
				ended = start.Add(test.at[i])
				run := &v1alpha1.ExecutionHook{Spec: v1alpha1.ExecutionHookSpec{Pods: hookPods(a.left)}}
				for _, state := range states {
					run.Status.Runs = append(run.Status.Runs, v1alpha1.HookRun{State: state, CompletionTime: ptr.To(metav1.NewMicroTime(ended))})
				}
				failures = a.add(run)
			}
			var left, lost []string
			for _, c := range a.left {
				left = append(left, c.Name)
			}
			for k := range failures {
				lost = append(lost, k[:1])
			}
			assert.Equal(t, test.left, left)
			assert.Equal(t, test.failures, lost)
			if test.wait == 0 {
				assert.True(t, a.due.IsZero(), "it does not wait")
			} else {
				assert.Equal(t, test.wait, a.due.Sub(ended))
			}
		})
	}
}
