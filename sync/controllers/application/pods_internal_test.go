package application

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
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

// objects is an API server whose whole objects are those of a client.
type objects struct {
	brokenDiscovery
	client dynamic.Interface
}

func (o objects) Dynamic() dynamic.Interface { return o.client }

func noObjects() *dynamicfake.FakeDynamicClient {
	return dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{podResource: "PodList"})
}

// While the API server does not say which Pods there are, that holds back no Application for long;
// once it does, they are enqueued again.
func TestPods_thatNobodyLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, silent := noObjects(), apiwatch.NewFake()
		client.PrependWatchReactor("*", func(clienttesting.Action) (bool, apiwatch.Interface, error) { return true, silent, nil })
		woken := 0
		pods := newPods(t.Context(), objects{client: client}, nil, func(types.NamespacedName) { woken++ })
		_, known, err := pods.of(shopKey, "uid")
		assert.False(t, known)
		require.NoError(t, err)
		<-time.After(podsLimit + time.Second)
		synctest.Wait()
		assert.Equal(t, 1, woken)
		_, known, err = pods.of(shopKey, "uid")
		assert.False(t, known)
		require.ErrorIs(t, err, errNoPods)

		silent.Error(&metav1.Status{Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired})
		<-time.After(time.Minute)
		synctest.Wait()
		_, known, err = pods.of(shopKey, "uid")
		assert.True(t, known)
		require.NoError(t, err)
		assert.Equal(t, 2, woken)
	})
}
