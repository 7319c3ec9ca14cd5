package health_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/sync/health"
	"waybill.dev/waybill/sync/manifest"
)

func item(name string, status health.Status, message string) health.Item {
	return health.Item{ID: manifest.ID{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop", Name: name}, Status: status, Message: message}
}

func TestSummary_none(t *testing.T) {
	s := health.Summarize(nil)
	assert.Equal(t, health.Summary{}, s)
	assert.True(t, s.Healthy())
	assert.Equal(t, "all 0 objects are healthy", s.String())
}

func TestSummary_worstFirst(t *testing.T) {
	items := []health.Item{
		item("d", health.InProgress, "Replicas: 0/1"),
		item("a", health.Current, ""),
		item("c", health.InProgress, "Replicas: 1/2"),
		item("b", health.Failed, "Progress deadline exceeded"),
		item("e", health.InProgress, "Replicas: 1/3"),
	}
	s := health.Summarize(slices.Clone(items))

	assert.False(t, s.Healthy())
	assert.True(t, s.Failed())
	assert.Equal(t, map[health.Status]int{health.Current: 1, health.InProgress: 3, health.Failed: 1}, s.Counts)
	assert.Equal(t, "4 of 5 objects are not healthy: Deployment.apps shop/b is Failed: Progress deadline exceeded; "+
		"Deployment.apps shop/c is InProgress: Replicas: 1/2; Deployment.apps shop/d is InProgress: Replicas: 0/1; and 1 more", s.String())

	slices.Reverse(items)
	assert.Equal(t, s, health.Summarize(items), "the order of the items does not matter")
}

func TestSummary_bounded(t *testing.T) {
	var items []health.Item
	for i := range 500 {
		items = append(items, item(fmt.Sprintf("web-%03d", i), health.Failed, strings.Repeat("ü", 5000)))
	}
	s := health.Summarize(items)

	assert.Equal(t, 500, s.Counts[health.Failed])
	assert.Len(t, s.Unhealthy, health.MaxUnhealthy)
	assert.Less(t, len(s.String()), 2000)
	assert.Less(t, len(s.Unhealthy[0].Message), 600)
}
