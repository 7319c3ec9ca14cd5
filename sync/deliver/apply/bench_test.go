package apply_test

import (
	"encoding/json"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/sync/manifest"
)

// large returns ConfigMaps of 2 KB.
func large(b *testing.B, count int, value string) []manifest.Object {
	objects := configMaps(b, count)
	for _, object := range objects {
		object.Object["data"] = map[string]any{"key": strings.Repeat(value, 2048/len(value))}
	}
	return objects
}

// bare applies objects over 20 connections, and does nothing else.
func bare(b *testing.B, f *fixture, objects []manifest.Object) {
	var group sync.WaitGroup
	work := make(chan manifest.Object)
	for range 20 {
		group.Go(func() {
			for object := range work {
				payload, err := json.Marshal(object.Object)
				if err == nil {
					_, err = f.target.metadata.Resource(resource("configmaps")).Namespace(f.namespace).Patch(b.Context(), object.GetName(),
						types.ApplyPatchType, payload, metav1.PatchOptions{FieldManager: "bare", Force: ptr.To(true)})
				}
				if err != nil {
					b.Error(err)
				}
			}
		})
	}
	for _, object := range objects {
		work <- object
	}
	close(work)
	group.Wait()
}

// BenchmarkCreate1000 compares with a bare program, in turns.
func BenchmarkCreate1000(b *testing.B) {
	var floor, ours time.Duration
	bare(b, newFixture(b), large(b, 100, "v"))
	for b.Loop() {
		f, objects := newFixture(b), large(b, 1000, "v")
		begun := time.Now()
		bare(b, f, objects)
		floor += time.Since(begun)
		f = newFixture(b)
		begun = time.Now()
		f.mustApply(nil, objects...)
		ours += time.Since(begun)
	}
	b.ReportMetric(float64(floor.Milliseconds())/float64(b.N), "floor-ms")
	b.ReportMetric(float64(ours.Milliseconds())/float64(b.N), "ours-ms")
	b.ReportMetric(float64(ours)/float64(floor), "x-floor")
}

func BenchmarkUnchanged1000(b *testing.B) {
	f := newFixture(b)
	objects := large(b, 1000, "v")
	inventory := f.mustApply(nil, objects...).Inventory
	f.requests.take()
	for b.Loop() {
		f.mustApply(inventory, objects...)
	}
	require.Empty(b, f.requests.take())
}

// BenchmarkMemory10000 measures what an Applier keeps of ten thousand objects.
func BenchmarkMemory10000(b *testing.B) {
	f := newFixture(b)
	before := heap()
	for b.Loop() {
		f.mustApply(nil, large(b, 10000, "v")...)
	}
	b.ReportMetric(float64(heap()-before)/10000, "B/object")
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
