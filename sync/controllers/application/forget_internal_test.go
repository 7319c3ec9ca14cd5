package application

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"waybill.dev/waybill/sync/controllers/application/healthcache"
	"waybill.dev/waybill/sync/controllers/application/tracker"
)

// The health of an object that is gone is not asked for again and again by a pass that still holds
// it.
func TestHealthOf_anObjectThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, reads := noObjects(), 0
		client.PrependReactor("get", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
			reads++
			return true, nil, errors.New("it is broken")
		})
		r := &Reconciler{
			tracker: tracker.New(t.Context(), brokenDiscovery{}, tracker.Options{}),
			health: healthcache.New(t.Context(), objects{client: client}, healthcache.Options{
				Changed: func(tracker.Ref) {}, Count: func(schema.GroupKind, string) int { return 1 },
				Missing: func(schema.GroupVersionResource) {},
			}),
		}
		s, o := surveyed(t)
		r.healthOf(s.entry, o)
		<-time.After(time.Hour)
		synctest.Wait()
		assert.LessOrEqual(t, reads, 1)
	})
}
