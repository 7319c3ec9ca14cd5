package application

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A85: the readiness of the Pod is mirrored at once, also while the Application rests after a large
// status; what else changes of the Pod is shown after the rest.
func TestPods_readinessIsMirroredAtOnce(t *testing.T) {
	app := types.NamespacedName{Namespace: "blog", Name: "shop"}
	a := func(change func(*pod)) *pod {
		p := &pod{key: types.NamespacedName{Namespace: "blog", Name: "shop-health"}, uid: "pod", owner: app, ownerUID: "shop"}
		change(p)
		return p
	}
	unready := a(func(p *pod) { p.ready = metav1.ConditionFalse })
	ready := a(func(p *pod) { p.ready = metav1.ConditionTrue })
	for reason, tc := range map[string]struct {
		change func(*pods)
		atOnce bool
	}{
		"ready":        {func(p *pods) { p.Put(ready) }, true},
		"unready":      {func(p *pods) { p.set(ready); p.Put(unready) }, true},
		"not known":    {func(p *pods) { p.set(ready); p.Put(a(func(*pod) {})) }, true},
		"finished":     {func(p *pods) { p.Put(a(func(p *pod) { p.ready, p.finished = metav1.ConditionFalse, true })) }, true},
		"deleting":     {func(p *pods) { p.Put(a(func(p *pod) { p.ready, p.deleting = metav1.ConditionFalse, true })) }, true},
		"gone":         {func(p *pods) { p.Drop(unready) }, true},
		"seen late":    {func(p *pods) { p.Replace([]*pod{ready}, "") }, true},
		"missed going": {func(p *pods) { p.Replace(nil, "") }, true},
		"reason":       {func(p *pods) { p.Put(a(func(p *pod) { p.ready, p.message = metav1.ConditionFalse, "it crashes" })) }, false},
		"as before":    {func(p *pods) { p.Replace([]*pod{unready}, "") }, false},
	} {
		t.Run(reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wakes := 0
				wake := func(key types.NamespacedName) {
					assert.Equal(t, app, key)
					wakes++
				}
				throttled := newThrottle(wake)
				pods := newPods(t.Context(), nil, wake, throttled.soon)
				pods.set(unready)
				throttled.wrote(app, maxStatusBytes)
				tc.change(pods)
				assert.Equal(t, tc.atOnce, wakes > 0)
				<-time.After(restAfter(maxStatusBytes))
				synctest.Wait()
				assert.Positive(t, wakes)
			})
		})
	}
}
