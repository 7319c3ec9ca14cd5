package healthcache

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What is in memory at once does not grow with the size of objects.
func TestNextPage(t *testing.T) {
	of := func(count, size int) []*unstructured.Unstructured {
		objects := make([]*unstructured.Unstructured, count)
		for i := range objects {
			objects[i] = &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "Widget", "data": strings.Repeat("x", size),
			}}
		}
		return objects
	}
	assert.EqualValues(t, maxPage, nextPage(of(10, 100)), "small objects come many at a time")
	assert.EqualValues(t, 1, nextPage(of(10, 2*pageBytes)), "one that does not fit comes by itself")
	assert.InDelta(t, 10, nextPage(of(200, pageBytes/10)), 1, "large ones come few at a time")
	assert.EqualValues(t, firstPage, nextPage(nil), "nothing says how large they are")
}
