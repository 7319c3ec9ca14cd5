package cluster_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
)

// BenchmarkRegistry_idleCluster shows what one more idle cluster costs, with the informers
// that an engaged cluster has: KiB of heap and stacks, and goroutines.
func BenchmarkRegistry_idleCluster(b *testing.B) {
	const clusters = 100
	for b.Loop() {
		r := cluster.NewRegistry(newLocal(b), cluster.Options{})
		config := user(b).RESTConfig()
		before, routines := inUse(), runtime.NumGoroutine()
		keep := make([]*cluster.Cluster, clusters)
		for i := range clusters {
			key := types.NamespacedName{Namespace: "bench", Name: fmt.Sprint(i)}
			r.Ensure(key, "a", config)
			keep[i] = engaged(b, r, key)
			informer, err := keep[i].Cache().GetInformer(b.Context(), &v1alpha1.ApplicationInstallation{}, cache.BlockUntilSynced(false))
			require.NoError(b, err)
			require.Eventually(b, informer.HasSynced, limit, often)
		}
		b.ReportMetric(float64(inUse()-before)/clusters/1024, "KiB/cluster")
		b.ReportMetric(float64(runtime.NumGoroutine()-routines)/clusters, "goroutines/cluster")
		runtime.KeepAlive(keep)
		r.Close()
	}
}

// inUse is the memory in use after everything that is garbage was collected.
func inUse() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapInuse + stats.StackInuse
}
