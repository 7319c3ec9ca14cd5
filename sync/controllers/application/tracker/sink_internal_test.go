package tracker

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/sync/cluster/watch"
)

// A kind that the API server refuses to list for minutes, as while the webhook that converts it is
// broken, is not known any more; its objects are kept. An API server that is gone says nothing.
func TestSink_distrustsWhatCannotBeListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told int
		c := New(t.Context(), nil, Options{KindChanged: func(schema.GroupKind) { told++ }})
		k := newKind(c, schema.GroupKind{Group: "example.com", Kind: "Widget"})
		c.kinds[k.gk] = k
		k.state.Resource = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
		s := &sink{kind: k}
		k.sink = s
		one := &Object{Ref: Ref{k.gk, types.NamespacedName{Namespace: "shop", Name: "one"}}, UID: "uid", Version: "1"}
		s.Replace([]*Object{one}, "1")
		s.fared(watch.State{Synced: true})
		fail := func(err error, times int) Phase {
			for range times {
				s.fared(watch.State{Err: err})
				<-time.After(15 * time.Second)
			}
			return c.State(k.gk).Phase
		}
		broken := apierrors.NewInternalError(errors.New("conversion webhook failed"))
		assert.Equal(t, Watched, fail(broken, 10), "a short while")
		assert.Equal(t, Watched, fail(errors.New("connection refused"), 100), "no server answers")
		assert.Equal(t, Watched, fail(broken, 10), "a short while, again")
		s.fared(watch.State{Synced: true})
		assert.Equal(t, Watched, fail(broken, 10), "a short while, again")
		told = 0
		assert.Equal(t, Failing, fail(broken, 10), "for minutes")
		assert.Equal(t, 1, told, "once")
		assert.ErrorContains(t, c.State(k.gk).Err, "watch widgets.example.com: ")
		assert.Same(t, one, c.Get(one.Ref))

		s.fared(watch.State{Synced: true})
		assert.Equal(t, Watched, c.State(k.gk).Phase)
		assert.NoError(t, c.State(k.gk).Err)
	})
}
