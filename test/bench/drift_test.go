package bench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"waybill.dev/waybill/test/observe"
)

// perRun is how many objects are deleted, and how many edited, in each run: five runs give 500
// events.
const perRun = 50

// driftBack measures how long an object that was deleted or edited by hand differs from git.
func driftBack(b *testing.B, s *results) {
	t := startGitSync1000(b)
	commit, _ := t.pushed(b, configMapFiles(delivered, many, "all"))
	t.settled(b, commit)
	var deleted, edited, all samples
	for run := 0; b.Loop(); run++ {
		for i := range perRun {
			// Others in each run: what is changed again and again is corrected after a pause.
			name := itemName((i*many/perRun + run) % many)
			deleted.add(t.deleteByHand(b, name))
			edited.add(t.editByHand(b, name))
		}
	}
	all = append(append(all, deleted...), edited...)
	s.atMost("", all.percentile(99), "s at p99", 1)
	s.inform("deleted", deleted.median(), "s at p50")
	s.inform("edited", edited.median(), "s at p50")
	s.inform("events", float64(len(all)), "events")
	s.rss(t.process)
}

// deleteByHand deletes an object and returns how long it is missing.
func (t *gitSync1000) deleteByHand(b *testing.B, name string) float64 {
	b.Helper()
	was := t.maps.Get(delivered, name)
	require.NotNil(b, was)
	require.NoError(b, t.client.Resource(configMaps).Namespace(delivered).Delete(b.Context(), name, metav1.DeleteOptions{}))
	return t.awaitRestored(b, func(o *observe.Object) bool { return o.GetName() == name && o.GetUID() != was.GetUID() })
}

// editByHand edits an object and returns how long it differs from git.
func (t *gitSync1000) editByHand(b *testing.B, name string) float64 {
	b.Helper()
	edited, err := t.client.Resource(configMaps).Namespace(delivered).Patch(b.Context(), name, types.MergePatchType,
		[]byte(`{"data":{"mark":"by hand"}}`), metav1.PatchOptions{FieldManager: "hand"})
	require.NoError(b, err)
	return t.awaitRestored(b, func(o *observe.Object) bool {
		if o.GetName() != name || !marked("all")(o) {
			return false
		}
		order, err := resourceversion.CompareResourceVersion(o.GetResourceVersion(), edited.GetResourceVersion())
		return err == nil && order > 0
	})
}

func (t *gitSync1000) awaitRestored(b *testing.B, match observe.Match) float64 {
	b.Helper()
	began := time.Now()
	await(b, t.maps, 1, match)
	return time.Since(began).Seconds()
}
