package healthcache_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/sync/health"
)

// What was determined by another rule is asked again, and nothing else.
func TestCache_goesByTheRulesInUse(t *testing.T) {
	w := newWorld(t, administrator)
	claim, pod := w.claim("data"), query("Pod", "pods", w.pod("data"))
	w.await(claim, health.InProgress)
	w.await(pod, health.InProgress)
	book, err := health.NewBook(map[string]string{
		"a.yaml": "- {group: '', kinds: [PersistentVolumeClaim], current: \"status.phase == 'Bound' || metadata.namespace == '" + w.namespace + "'\"}",
	})
	require.NoError(t, err)
	mark := w.mark()
	health.Use(book)
	t.Cleanup(func() { health.Use(nil) })
	w.await(claim, health.Current)
	w.await(pod, health.InProgress)
	health.Use(nil)
	w.await(claim, health.InProgress)
	assert.Equal(t, []string{"get", "get"}, w.requests(mark), "the claim, twice")
}
