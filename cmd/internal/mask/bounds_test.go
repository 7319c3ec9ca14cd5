package mask_test

import (
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/cmd/internal/mask"
)

// allocated returns how much memory is allocated to find the manifests of an object, and how many it has.
func allocated(object *unstructured.Unstructured) (bytes uint64, found int) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	found = len(mask.Find(object, func(m map[string]any) bool { return m["kind"] != nil }))
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, found
}

// What finding manifests takes grows with them, and not with the square: any list may have as many of one name as an object has room for.
func TestFind_isBounded(t *testing.T) {
	const many = 5000
	one := func() any { return map[string]any{"kind": "Secret", "metadata": map[string]any{"name": "a"}} }
	namesakes, long := []any{}, map[string]any{}
	for i := range many {
		namesakes = append(namesakes, one())
		long[strconv.Itoa(i)] = one()
	}
	for reason, object := range map[string]map[string]any{
		"namesakes":                {"items": namesakes},
		"all of them below a long": {strings.Repeat("x", 100_000): long},
	} {
		bytes, found := allocated(&unstructured.Unstructured{Object: object})
		assert.Equal(t, many, found, reason)
		assert.Less(t, bytes, uint64(many*2000), reason)
	}
}
