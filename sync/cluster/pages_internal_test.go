package cluster

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
)

// A list of which there is always another page, with the same object or with what is not kept of objects,
// is not gathered for ever.
func TestLedger_endlessPages(t *testing.T) {
	long := strings.Repeat("a", 1<<20)
	cases := map[string]func(int64) string{
		"SameObject": func(int64) string { return `"name":"one","annotations":{"a":"` + long + `"}}` },
		"ManagedFields": func(n int64) string {
			return fmt.Sprintf(`"name":"n%d","managedFields":[{"fieldsV1":{"a":%q}}]}`, n, long)
		},
	}
	for name, metadata := range cases {
		t.Run(name, func(t *testing.T) {
			var sent atomic.Int64
			l := anEighth()
			l.bodyWeight = 8 << 20
			c, got := engagedWithin(t, newHostile(t, map[string]http.HandlerFunc{configMapPath: func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Get("watch") != "" {
					w.WriteHeader(http.StatusBadRequest)
					return
				}
				n := sent.Add(1)
				if n > 100 {
					<-r.Context().Done() // more than there should be
					return
				}
				_, _ = io.WriteString(w, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"continue":"more"},"items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{`+metadata(n)+`}]}`)
			}}), l)
			resource := c.Dynamic().Resource(configMaps)
			_, _, err := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return resource.List(ctx, o)
			}).List(t.Context(), metav1.ListOptions{}) // as reflectors do
			require.Error(t, err)
			require.Eventually(t, func() bool { return got() != nil }, time.Minute, 5*time.Millisecond)
			assert.ErrorContains(t, got(), "the size of lists, with that of configmaps, exceeds the limit of 8 MiB")
			assert.LessOrEqual(t, sent.Load(), int64(12))
		})
	}
}
