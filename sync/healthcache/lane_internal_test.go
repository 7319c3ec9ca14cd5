package healthcache

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/sync/tracker"
)

// A list is confined to the one namespace that everything open is in.
func TestLane_listsTheNamespaceOfWhatIsOpen(t *testing.T) {
	asked := ""
	c := New(t.Context(), nil, Options{Count: func(_ schema.GroupKind, namespace string) int {
		asked = "in " + namespace
		return 0
	}})
	l := c.lane(schema.GroupVersionResource{Version: "v1", Resource: "pods"})
	l.readers = readsPerKind // nobody reads
	ref := func(namespace string, i int) tracker.Ref {
		return tracker.Ref{NamespacedName: types.NamespacedName{Namespace: namespace, Name: fmt.Sprint(i)}}
	}
	decide := func() (string, bool) {
		asked = ""
		open, _ := l.any()
		return l.worthListing(open)
	}
	for i := range listThreshold - 1 {
		l.add(ref("one", i))
		l.add(ref("one", i)) // counts once
	}
	_, worth := decide()
	assert.False(t, worth, "too few")
	assert.Empty(t, asked)

	l.add(ref("other", 0))
	namespace, worth := decide()
	assert.True(t, worth)
	assert.Empty(t, namespace, "in two namespaces")
	assert.Equal(t, "in ", asked)

	l.add(ref("one", listThreshold))
	l.remove(ref("other", 0))
	l.remove(ref("other", 0))
	l.remove(ref("third", 0)) // was never open
	namespace, worth = decide()
	assert.True(t, worth)
	assert.Equal(t, "one", namespace)
	assert.Equal(t, "in one", asked)

	c.listings = maxListings
	_, worth = decide()
	assert.False(t, worth, "as many kinds are listed as may be")
	assert.Empty(t, asked)
}
